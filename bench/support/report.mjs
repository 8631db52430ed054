import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/run.mjs";
import { addRun, combine, combineRows } from "./runs.mjs";
import { machineNote, saveResult } from "./save-result.mjs";

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
