/*
 * `npm run release:publish`: publishes packages whose version is not on npm yet, and tags the commit. It needs Node 22
 * or newer, as changesets does.
 */
import { install, PNPM } from "./install.mjs";
import { build, run, tool } from "./run.mjs";

install();
build();
// Changesets publishes with the workspace's package manager, which it looks up on the path.
const publish = ["node", tool("@changesets/cli", "bin.js"), "publish"];
run("npx", ["--yes", "--package", PNPM, "--", ...publish], { shell: process.platform === "win32" });
