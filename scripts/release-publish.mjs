/*
 * `npm run release:publish`: publishes the packages whose version npm does not have yet, and tags the commit. Needs Node 22 or
 * newer, as changesets does.
 */
import { install, PNPM } from "./install.mjs";
import { build, run, tool } from "./run.mjs";

install();
build();
// Changesets publishes with the package manager of the workspace, which it looks for on the path.
const publish = ["node", tool("@changesets/cli", "bin.js"), "publish"];
run("npx", ["--yes", "--package", PNPM, "--", ...publish], { shell: process.platform === "win32" });
