/*
 * `npm test`: installs, type-checks, builds, lints and runs the short layer of tests. `npm run test:all` then runs the long
 * layer. Arguments go to vitest: `npm test -- test/e2e`. At the end stands what each part took.
 */
import { install } from "./install.mjs";
import { bundle, checkTypes, runNode, tool } from "./run.mjs";

const given = process.argv.slice(2);
const all = given.includes("--all");
const args = given.filter((argument) => argument !== "--all");

/** The parts of the run, each with the time at which it began. */
const parts = [];
const begin = (name) => parts.push({ name, start: performance.now() });
process.on("exit", () => {
  const end = performance.now();
  const seconds = ({ name, start }, i) =>
    `${name} ${Math.round(((parts[i + 1]?.start ?? end) - start) / 1000)} s`;
  console.log(`\n${parts.map(seconds).join(", ")}`);
});

const test = (...more) => runNode(tool("vitest", "vitest.mjs"), ["run", ...more]);
begin("install");
install();
begin("types");
checkTypes();
begin("build");
bundle();
begin("lint");
runNode(tool("@biomejs/biome", "bin/biome"), ["check", "--error-on-warnings", "."]);
runNode("scripts/check-imports.mjs");
runNode("scripts/check-names.mjs");
begin("tests");
test(...args);
if (all && args.length === 0) {
  begin("long tests");
  test("--project", "long");
}
