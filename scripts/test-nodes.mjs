/*
 * `npm run test:nodes`: runs the tests on every supported line of Node, with the binaries that npm brings. Arguments
 * choose lines: `npm run test:nodes -- 22 24`.
 */
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { install } from "./install.mjs";
import { build, root, run, runNode, tool } from "./run.mjs";

const LINES = ["20", "22", "24", "26"];

const os = { win32: "win", linux: "linux", darwin: "darwin" }[process.platform];
const binary = process.platform === "win32" ? "bin/node.exe" : "bin/node";

function nodeBinary(line) {
  const folder = join(root, "node_modules", ".cache", `node-${line}`);
  const name = `node-${os}-${process.arch}`;
  const path = join(folder, "node_modules", name, binary);
  if (!existsSync(path)) {
    run("npm", ["install", "--no-save", "--no-package-lock", "--prefix", folder, `${name}@${line}`], {
      shell: process.platform === "win32",
    });
  }
  return path;
}

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
