/*
 * `npm run release:site`: adds the built documentation site to the branch gh-pages, beside those of earlier versions,
 * and pushes the branch. The first release begins the branch.
 */
import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./run.mjs";

const pages = join(root, "pages");
const succeeds = (...args) => spawnSync("git", args, { cwd: root, stdio: "inherit" }).status === 0;
const author = ["-c", "user.name=github-actions", "-c", "user.email=github-actions@users.noreply.github.com"];

succeeds("fetch", "origin", "gh-pages");
if (!succeeds("worktree", "add", pages, "gh-pages")) {
  run("git", ["worktree", "add", "--detach", pages]);
  run("git", ["-C", pages, "checkout", "--orphan", "gh-pages"]);
  run("git", ["-C", pages, "rm", "-r", "--force", "--quiet", "."]);
}
const built = join(root, "site", "dist");
const newest = Math.max(...readdirSync(built).map(versionOf));
const isNewest = readdirSync(pages).every((name) => versionOf(name) <= newest);
// The files beside the folders of the versions lead to the newest one.
const changed = readdirSync(built).filter((name) => isNewest || versionOf(name) > 0);
for (const name of changed) {
  // Pages that this build no longer has must go.
  rmSync(join(pages, name), { recursive: true, force: true });
  cpSync(join(built, name), join(pages, name), { recursive: true });
}
writeFileSync(join(pages, ".nojekyll"), "");
run("git", ["-C", pages, "add", "--all"]);
if (!succeeds("-C", pages, "diff", "--cached", "--quiet")) {
  const { version } = JSON.parse(readFileSync(join(root, "packages", "core", "package.json"), "utf8"));
  run("git", [...author, "-C", pages, "commit", "--message", `Documentation of ${version}`]);
}
run("git", ["-C", pages, "push", "origin", "gh-pages"]);

/** The version of a folder such as `v1.2` as a number that grows with it; 0 for other names. */
function versionOf(name) {
  const [, major, minor] = /^v(\d+)\.(\d+)$/.exec(name) ?? [];
  return major === undefined ? 0 : major * 1_000_000 + Number(minor) + 1;
}
