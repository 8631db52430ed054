/*
 * How much load does a model take with adaptive batching, and how much with fixed settings? Simulates the batcher under
 * a virtual clock, so the figures are the same on every machine. Writes the table of docs/batching.md and its picture.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, runNode, tool } from "../scripts/run.mjs";

runNode(tool("typescript", "bin/tsc"), ["-p", join(root, "test", "simulation")]);
// The folder is as deep as the sources, so that their relative paths to the packages work.
const compiled = join(root, "node_modules", ".simulation", "write-report.js");
const { writeReport } = await import(pathToFileURL(compiled).href);
console.log(`\n${await writeReport(root, (text) => console.error(text))}`);
