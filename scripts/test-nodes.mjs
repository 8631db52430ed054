/*
 * `npm run test:nodes`: runs the tests of `npm test` on every supported line of Node, with the binaries that npm brings.
 * Numbers choose lines, and the arguments after them go to vitest:
 * `npm run test:nodes -- 22 24 test/e2e`. All lines run, also after one that fails.
 */
import { spawnSync } from "node:child_process";
import { delimiter, dirname } from "node:path";
import { install } from "./install.mjs";
import { LINES, nodeBinary } from "./node-lines.mjs";
import { build, root, tool } from "./run.mjs";

const given = process.argv.slice(2);
const firstOther = given.findIndex((argument) => !/^\d+$/.test(argument));
const chosen = firstOther < 0 ? given : given.slice(0, firstOther);
const unknown = chosen.filter((line) => !LINES.includes(line));
if (unknown.length > 0) {
  console.error(`test:nodes: expected lines of Node among ${LINES.join(", ")}, got ${unknown.join(", ")}`);
  process.exit(1);
}
const rest = given.slice(chosen.length);
install();
build();
const failed = [];
for (const line of chosen.length > 0 ? chosen : LINES) {
  const node = nodeBinary(line);
  console.log(`\nNode ${line}`);
  // Programs that tests start by name use the same line.
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  const args = [tool("vitest", "vitest.mjs"), "run", ...rest];
  const { status } = spawnSync(node, args, { cwd: root, env, stdio: "inherit" });
  if (status !== 0) failed.push(line);
}
if (failed.length > 0) {
  console.error(`\ntest:nodes: tests failed on Node ${failed.join(", ")}`);
  process.exitCode = 1;
}
