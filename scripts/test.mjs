/*
 * `npm test`: installs, type-checks, builds, lints and runs the short layer of tests. `npm run test:all` then runs the long
 * layer. Arguments go to vitest: `npm test -- test/e2e`. At the end stands what each part took.
 */
import { install } from "./install.mjs";
import { bundle, checkTypes, runNode, tool } from "./run.mjs";

const given = process.argv.slice(2);
const args = given.filter((argument) => argument !== "--all");
const times = [];

/** Does a part. Its time is noted when it ends, or when it ends the program. */
function part(name, action) {
  const start = performance.now();
  const note = () => times.push(`${name} ${Math.round((performance.now() - start) / 1000)} s`);
  process.once("exit", note);
  action();
  process.off("exit", note);
  note();
}

const test = (...more) => runNode(tool("vitest", "vitest.mjs"), ["run", ...more]);
part("install", install);
part("types", checkTypes);
part("build", bundle);
part("lint", () => {
  runNode(tool("@biomejs/biome", "bin/biome"), ["check", "--error-on-warnings", "."]);
  runNode("scripts/check-imports.mjs");
  runNode("scripts/check-names.mjs");
});
process.on("exit", () => console.log(`\n${times.join(", ")}`));
part("tests", () => test(...args));
if (given.includes("--all")) part("long tests", () => test("--project", "long"));
