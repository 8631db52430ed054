/*
 * How much load does a model take with adaptive batching, and how much with fixed settings? Simulates the batcher under
 * a virtual clock, so the figures are the same on every machine. Writes the table of docs/batching.md and its picture.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { root } from "../scripts/run.mjs";

const compiled = join(root, "node_modules", ".simulation", "write-report.mjs");
await build({
  input: join(root, "test", "simulation", "write-report.ts"),
  platform: "node",
  external: /^[^.#/]/,
  resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
  output: { file: compiled },
});
const { writeReport } = await import(pathToFileURL(compiled).href);
console.log(`\n${await writeReport(root, (text) => console.error(text))}`);
