/*
 * `npm test`: installs, builds, lints, type-checks and tests all behaviours. `npm run test:all` then runs the long
 * tests. Arguments go to vitest, which then looks in both: `npm test -- test/golden`.
 */
import { install } from "./install.mjs";
import { build, runNode, tool } from "./run.mjs";

const given = process.argv.slice(2);
const all = given.includes("--all");
const args = given.filter((argument) => argument !== "--all");

install();
build();
runNode(tool("@biomejs/biome", "bin/biome"), ["check", "--error-on-warnings", "."]);
runNode("scripts/check-imports.mjs");
runNode("scripts/check-names.mjs");
const test = (...more) => runNode(tool("vitest", "vitest.mjs"), ["run", ...more]);
if (args.length > 0) test(...args);
else {
  test("--project", "!long");
  if (all) test("--project", "long");
}
