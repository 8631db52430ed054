/*
 * `npm run release:api [-- --since <commit>]`: compares the API reports with those of a commit, by default of the last
 * release, and fails if neither a changeset that was added since then nor the version announces a change. A removed or
 * changed export needs a major changeset of its package, or a minor one below version 1.0. A new export needs a minor
 * one, or a patch below 1.0. The version counts once `npm run release:version` has consumed the changesets.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { apiChanges, higher, levelBetween, neededLevel, reaches } from "./api-changes.mjs";
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
for (const name of packagesAtCommit()) {
  const path = `packages/${name}/api-report.md`;
  const changes = apiChanges(textAt(path), textNow(path));
  count += changes.length;
  const [before, now] = versions(name);
  const level = higher(levels.get(`@tritonjs/${name}`), levelBetween(before, now));
  for (const { kind, name: changed } of changes) {
    const needed = neededLevel(kind, before);
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

/** Packages that have a version to compare with. The exports of a new package are no changes. */
function packagesAtCommit() {
  const names = git("ls-tree", "--name-only", `${since}:packages`).split("\n");
  return names.filter((name) => name !== "" && textAt(`packages/${name}/package.json`) !== "");
}

/** Versions of a package at the commit and now. They are equal for a removed package. */
function versions(name) {
  const path = `packages/${name}/package.json`;
  const before = textAt(path);
  return [JSON.parse(before).version, JSON.parse(textNow(path) || before).version];
}

/** Highest level of each package in changesets that were added or edited since the commit. */
function levelsOfChangesets() {
  const levels = new Map();
  for (const file of readdirSync(join(root, ".changeset"))) {
    if (!file.endsWith(".md") || file === "README.md") continue;
    const text = textNow(`.changeset/${file}`);
    if (text === textAt(`.changeset/${file}`)) continue;
    for (const [, name, level] of text.matchAll(/^["']?(@tritonjs\/[\w-]+)["']?: (patch|minor|major)$/gm)) {
      levels.set(name, higher(levels.get(name), level));
    }
  }
  return levels;
}
