/*
 * `npm run bench`: runs all benchmarks, or those named: `npm run bench -- event-loop`. `npm run bench -- compare <revision>`
 * runs this tree against another revision.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { install } from "../scripts/install.mjs";
import { build, root, runNode } from "../scripts/run.mjs";

install();
build();
const folder = join(root, "bench");
const all = readdirSync(folder)
  .filter((file) => file.endsWith(".bench.mjs"))
  .map((file) => file.replace(".bench.mjs", ""));
const chosen = process.argv.slice(2);
if (chosen[0] === "compare") {
  runNode(join(folder, "compare.mjs"), chosen.slice(1));
  process.exit();
}
for (const name of chosen.length > 0 ? chosen : all) {
  console.log(`\n# ${name}`);
  runNode(join(folder, `${name}.bench.mjs`));
}
