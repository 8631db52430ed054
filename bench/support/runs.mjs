import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../../scripts/run.mjs";
import { PAIRS, SECONDS } from "./pairs.mjs";
import { machine, resultsFolder } from "./save-result.mjs";
import { median, short } from "./statistics.mjs";

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
