import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { root } from "../../scripts/run.mjs";
import { median, PAIRS, SECONDS, short } from "./pairs.mjs";

/**
 * Prints a table, saves it under `bench/results/`, and puts it with its plots into a document. The document gets the
 * medians of this run and of earlier runs of the same packages. After a benchmark with `measured`, `npm run pictures`
 * draws its pictures again.
 *
 * @param rows an object of columns by the name of the row
 * @param plots by name, a function that draws an SVG document, and its arguments
 * @param figures further figures for the JSON
 * @param measured figures that a picture of `scripts/pictures` draws
 * @param note text under the table, or a function that makes it of the figures
 * @param document file in `docs/` with markers for the table
 */
export function report(
  name,
  { rows, plots = {}, figures = {}, measured = {}, note = "", document = "performance.md" },
) {
  const noteOf = (own) => (typeof note === "function" ? note(own) : note);
  console.table(rows);
  if (note !== "") console.log(noteOf(figures));
  saveResult(name, { rows, ...figures });
  const drawn = Object.fromEntries(Object.entries(plots).map(([word, [, ...data]]) => [word, data]));
  const runs = addRun(name, { rows, figures, measured, drawn });
  if (process.env.BENCH_DOCS === "0") return;
  const published = combine(runs.map(({ data }) => data));
  if (Object.keys(measured).length > 0) {
    const json = JSON.stringify({ machine: machineNote(), ...published.measured }, null, 2);
    writeFileSync(join(root, "scripts", "pictures", "measured", `${name}.json`), `${json}\n`);
  }
  const folder = join(root, "docs", "performance");
  mkdirSync(folder, { recursive: true });
  const images = Object.entries(plots).map(([word, [draw]]) => {
    const file = `${[name, word].filter((part) => part !== "").join("-")}.svg`;
    writeFileSync(join(folder, file), draw(...published.drawn[word]));
    return `![${file.replace(".svg", "")}](performance/${file})`;
  });
  const parts = [
    markdownTable(combineRows(runs.map(({ data }) => data.rows))),
    noteOf(published.figures),
    ...images,
    `Measured on ${machineNote()}.${datesOf(runs)}`,
  ];
  replaceSection(document, name, parts.filter((part) => part !== "").join("\n\n"));
}

/** A sentence about several runs. A single run needs none. */
function datesOf(runs) {
  if (runs.length === 1) return "";
  const dates = runs.map(({ date }) => `${date.slice(0, 10)} ${date.slice(11, 16)}`);
  return ` Medians of ${runs.length} runs: ${new Intl.ListFormat("en-GB").format(dates)} UTC. Least and most are of all of them.`;
}

function markdownTable(rows) {
  const columns = [...new Set(Object.values(rows).flatMap(Object.keys))];
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const body = Object.entries(rows).map(([name, row]) =>
    line([name, ...columns.map((column) => row[column] ?? "")]),
  );
  return [line(["case", ...columns]), line(["---", ...columns.map(() => "---:")]), ...body].join("\n");
}

/** Replaces the text between the two markers of a benchmark. */
function replaceSection(file, name, text) {
  const path = join(root, "docs", file);
  const [start, end] = [`<!-- bench ${name} -->`, `<!-- end of bench ${name} -->`];
  const document = readFileSync(path, "utf8");
  const [from, to] = [document.indexOf(start), document.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/${file} has no place for ${name}`);
  const before = document.slice(0, from + start.length);
  writeFileSync(path, `${before}\n\n${text}\n\n${document.slice(to)}`);
}

/**
 * Adds the data of a run to those of earlier runs of the same packages, on the same kind of machine and with the same
 * effort. Runs of anything else are dropped.
 *
 * @returns all runs, each with its date and its data
 */
export function addRun(name, data) {
  const path = join(resultsFolder(), "runs", `${name}.json`);
  const { cpu, cores, node } = machine;
  const of = { packages: hashOfPackages(), cpu, cores, node, pairs: PAIRS, seconds: SECONDS };
  const kept = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : { of, runs: [] };
  const isSame = JSON.stringify(kept.of) === JSON.stringify(of);
  const runs = [...(isSame ? kept.runs : []), { date: new Date().toISOString(), data }];
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify({ of, runs }, null, 2)}\n`);
  return runs;
}

function hashOfPackages() {
  const git = (...args) => execFileSync("git", args, { cwd: root, maxBuffer: 2 ** 30 });
  const hash = createHash("sha256");
  for (const args of [
    ["rev-parse", "HEAD:packages"],
    ["diff", "HEAD", "--", "packages"],
  ]) {
    hash.update(git(...args));
  }
  return hash.digest("hex");
}

/**
 * Combines the same data of several runs: the median of each number, the least of those named `least`, and the most of
 * those named `most`. Where the runs have different forms, those of the newest are taken.
 */
export function combine(values, name = "") {
  const newest = values.at(-1);
  if (values.some((value) => typeof value !== typeof newest || value === null)) return newest;
  if (typeof newest === "number") {
    if (name === "least") return Math.min(...values);
    return name === "most" ? Math.max(...values) : short(median(values));
  }
  if (typeof newest === "string" && values.every((value) => /^-?[\d.]+%$/.test(value))) {
    return `${Math.round(median(values.map(Number.parseFloat)))}%`;
  }
  if (typeof newest !== "object") return newest;
  const keys = Object.keys(newest);
  if (values.some((value) => Object.keys(value).join() !== keys.join())) return newest;
  const parts = keys.map((key) => [
    key,
    combine(
      values.map((value) => value[key]),
      key,
    ),
  ]);
  return Array.isArray(newest) ? parts.map(([, part]) => part) : Object.fromEntries(parts);
}

/**
 * Combines the rows of several runs. Rows without `least` and `most` get the spread of each figure, if the runs differ.
 */
export function combineRows(all) {
  const rows = combine(all);
  for (const [name, row] of Object.entries(rows)) {
    if ("least" in row || all.some((one) => one[name] === undefined)) continue;
    for (const column of Object.keys(row)) {
      const [least, ...others] = all
        .map((one) => one[name][column])
        .sort((a, b) => Number.parseFloat(a) - Number.parseFloat(b));
      const most = others.at(-1);
      if (most !== undefined && most !== least) row[column] = `${row[column]} (${least} to ${most})`;
    }
  }
  return rows;
}

/** The machine of a measurement. A load well above 0 before a run means that the machine had other work. */
export const machine = {
  cpu: cpus()[0]?.model,
  cores: availableParallelism(),
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  platform: process.platform,
  loadAtStart: loadavg().map((load) => Math.round(load * 10) / 10),
};

/** The machine in one sentence. */
export const machineNote = () =>
  `${machine.cores} cores (${machine.cpu}), Node ${process.versions.node}, load of the machine before the run ${machine.loadAtStart[0]}`;

export const resultsFolder = () => process.env.BENCH_RESULTS ?? join(root, "bench", "results");

/** Writes figures under `bench/results/` (or `BENCH_RESULTS`), with the machine they were measured on. */
export function saveResult(name, figures) {
  const folder = resultsFolder();
  mkdirSync(folder, { recursive: true });
  const result = { machine: { ...machine, date: new Date().toISOString() }, figures };
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(result, null, 2)}\n`);
}
