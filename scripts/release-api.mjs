/*
 * `npm run release:api [-- --since <commit>]`: compares the API reports with those of a commit, by default of the last
 * release, and fails if a changeset that was added since then does not announce a change. A removed or changed export
 * needs a major changeset of its package, or a minor one below version 1.0. A new export needs a minor one, or a patch
 * below 1.0.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { apiChanges, neededLevel, reaches } from "./api-changes.mjs";
import { root } from "./run.mjs";

const { values } = parseArgs({ options: { since: { type: "string" } } });
const since = values.since ?? lastRelease();
if (since === undefined) {
  console.log("API: no release yet, so there is nothing to compare the reports with");
  process.exit();
}
try {
  git("rev-parse", "--verify", "--quiet", `${since}^{commit}`);
} catch {
  console.error(`cannot compare the API reports: expected a commit in --since, got '${since}'`);
  process.exit(1);
}

const levels = levelsOfChangesets();
const faults = [];
let count = 0;
for (const name of packagesBeforeAndNow()) {
  const path = `packages/${name}/api-report.md`;
  const changes = apiChanges(textAt(path), textNow(path));
  count += changes.length;
  const version = versionOf(name);
  const level = levels.get(`@tritonjs/${name}`);
  for (const { kind, name: changed } of changes) {
    const needed = neededLevel(kind, version);
    if (reaches(level, needed)) continue;
    faults.push(
      `${changed} (${kind}): expected a changeset of level ${needed} for @tritonjs/${name}, got ${level ?? "none"}`,
    );
  }
}
if (faults.length > 0) {
  console.error(`${faults.join("\n")}\nrun \`npm run changeset\` and describe the changes`);
  process.exit(1);
}
console.log(`API: changesets announce all ${count} changes of exports since ${since}`);

function git(...args) {
  const stdio = ["ignore", "pipe", "ignore"];
  return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio, maxBuffer: 2 ** 26 });
}

/** The newest release in the history of the commit. Changesets tags each package; core is one of them. */
function lastRelease() {
  try {
    return git("describe", "--tags", "--abbrev=0", "--match", "@tritonjs/core@*").trim();
  } catch {
    return undefined;
  }
}

function textAt(path) {
  try {
    return git("show", `${since}:${path}`);
  } catch {
    return "";
  }
}

function textNow(path) {
  const file = join(root, path);
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

function packagesBeforeAndNow() {
  const before = git("ls-tree", "--name-only", `${since}:packages`).split("\n").filter(Boolean);
  return new Set([...before, ...readdirSync(join(root, "packages"))]);
}

function versionOf(name) {
  const path = `packages/${name}/package.json`;
  return JSON.parse(textNow(path) || textAt(path)).version;
}

/** Highest level of each package in changesets that were added or edited since the commit. */
function levelsOfChangesets() {
  const levels = new Map();
  for (const file of readdirSync(join(root, ".changeset"))) {
    if (!file.endsWith(".md") || file === "README.md") continue;
    const text = textNow(`.changeset/${file}`);
    if (text === textAt(`.changeset/${file}`)) continue;
    for (const [, name, level] of text.matchAll(/^["']?(@tritonjs\/[\w-]+)["']?: (patch|minor|major)$/gm)) {
      if (!reaches(levels.get(name), level)) levels.set(name, level);
    }
  }
  return levels;
}
