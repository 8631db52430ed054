/*
 * `npm run test:nodes`: runs the tests on every supported line of Node, with the binaries that npm brings. Arguments
 * choose lines: `npm run test:nodes -- 22 24`.
 */
import { delimiter, dirname } from "node:path";
import { install } from "./install.mjs";
import { LINES, nodeBinary } from "./node-lines.mjs";
import { build, runNode, tool } from "./run.mjs";

install();
build();
const chosen = process.argv.slice(2);
for (const line of chosen.length > 0 ? chosen : LINES) {
  const node = nodeBinary(line);
  console.log(`\nNode ${line}`);
  // Programs that tests start by name use the same line.
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
  runNode(tool("vitest", "vitest.mjs"), ["run"], { node, env });
}
