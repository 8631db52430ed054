/*
 * How many files does a reader of one request open? Counts the source files and folders whose functions a request enters, and
 * the moves between files. `npm run bench -- way` prints the table; WAY_TREES adds the roots of other checkouts, separated by
 * commas, whose packages are installed, and WAY_FILES=1 the files of each way. The test is in test/way.
 */
import { execFileSync } from "node:child_process";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../scripts/run.mjs";
import { saveResult } from "./support/save-result.mjs";

const fileOf = (name) => fileURLToPath(new URL(`../test/way/${name}`, import.meta.url));
const others = (process.env.WAY_TREES ?? "").split(",").filter((tree) => tree !== "");

function waysOf(program, tree) {
  const hooks = new URL("../test/way/run-sources.mjs", import.meta.url).href;
  const env = { ...process.env, WAY_TREE: tree };
  return JSON.parse(execFileSync(process.execPath, ["--import", hooks, fileOf(program)], { env }));
}

function figuresOf(way) {
  const files = new Set(way);
  return {
    files: files.size,
    folders: new Set([...files].map(dirname)).size,
    moves: way.filter((file, i) => i > 0 && file !== way[i - 1]).length,
    "function entries": way.length,
  };
}

/** Each file with the number of its function entries. */
function entriesOf(way) {
  const entries = {};
  for (const file of way) entries[file] = (entries[file] ?? 0) + 1;
  return Object.fromEntries(Object.entries(entries).sort());
}

const ways = {};
for (const tree of [root, ...others.map((path) => resolve(path))]) {
  const request = waysOf("http-request.mjs", tree);
  const token = waysOf("chat-token.mjs", tree);
  const where = tree === root ? "" : ` (${tree})`;
  ways[`HTTP request, main thread${where}`] = request.main;
  ways[`HTTP request, worker${where}`] = request.worker;
  ways[`token of a chat${where}`] = token.main;
}

const mapped = (map) => Object.fromEntries(Object.entries(ways).map(([name, way]) => [name, map(way)]));
const [rows, files] = [mapped(figuresOf), mapped(entriesOf)];
console.table(rows);
if (process.env.WAY_FILES === "1") {
  for (const [name, entries] of Object.entries(files)) {
    console.log(`\n${name}`);
    for (const [file, count] of Object.entries(entries)) console.log(`${count} ${file}`);
  }
}
saveResult("way", { rows, files });
