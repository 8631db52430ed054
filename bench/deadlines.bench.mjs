/*
 * How much load does a model take whose classes of requests have limits of their own, and what is left in overload?
 * Simulates the batcher and the policies of four papers under a virtual clock, so the figures are the same on every
 * machine. Writes the table of docs/deadlines.md.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "rolldown";
import { root } from "../scripts/run.mjs";

const compiled = join(root, "node_modules", ".simulation", "deadline-report.mjs");
await build({
  input: join(root, "test", "simulation", "deadline-report.ts"),
  platform: "node",
  external: /^[^.#/]/,
  resolve: { extensionAlias: { ".js": [".ts", ".js"] } },
  output: { file: compiled },
});
const { writeDeadlineReport } = await import(pathToFileURL(compiled).href);
console.log(`\n${await writeDeadlineReport(root, (text) => console.error(text))}`);
process.exit(0);
