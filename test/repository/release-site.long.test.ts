import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Program } from "../support/program.js";
import { repositoryRoot } from "../support/repository.js";

let folder: string;
let origin: string;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "tritonjs-release-site-"));
  origin = join(folder, "origin.git");
  await git(folder, "init", "--quiet", "--bare", "--initial-branch=main", origin);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("adds the site of each version, and replaces that of a version that is built again", async () => {
  const first = await checkout("first");
  await release(first, "0.1.0", { "index.html": "0.1", "v0.1/page.html": "page", "v0.1/gone.html": "gone" });
  expect(await published()).toEqual([".nojekyll", "index.html", "v0.1/gone.html", "v0.1/page.html"]);
  const second = await checkout("second");
  await release(second, "0.2.0", { "index.html": "0.2", "v0.2/page.html": "page" });
  const third = await checkout("third");
  await release(third, "0.1.1", { "index.html": "0.1", "v0.1/page.html": "mended" });
  expect(await published()).toEqual([".nojekyll", "index.html", "v0.1/page.html", "v0.2/page.html"]);
  expect(await git(origin, "show", "gh-pages:v0.1/page.html")).toBe("mended");
  expect(await git(origin, "show", "gh-pages:index.html")).toBe("0.2");
  expect(await git(origin, "log", "--format=%s", "gh-pages")).toBe(
    "Documentation of 0.1.1\nDocumentation of 0.2.0\nDocumentation of 0.1.0\n",
  );
});

async function git(cwd: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await new Program("git", args, { cwd }).ended;
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

/** A repository as the workflow checks it out: one commit, and the branch gh-pages only at its origin. */
async function checkout(name: string): Promise<string> {
  const clone = join(folder, name);
  await git(folder, "init", "--quiet", "--initial-branch=main", clone);
  await git(clone, "remote", "add", "origin", origin);
  writeFileSync(join(clone, "README.md"), "");
  await git(clone, "add", "README.md");
  const author = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
  await git(clone, ...author, "commit", "--quiet", "--message", "source");
  return clone;
}

/** Runs the script on a built site: texts by path. */
async function release(clone: string, version: string, site: Record<string, string>): Promise<void> {
  for (const script of ["release-site.mjs", "run.mjs"])
    cpSync(join(repositoryRoot, "scripts", script), join(clone, "scripts", script));
  const files = { ...site, "../../packages/core/package.json": JSON.stringify({ version }) };
  for (const [path, text] of Object.entries(files)) {
    const file = join(clone, "site", "dist", path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, text);
  }
  const { code, stdout, stderr } = await Program.node(join(clone, "scripts", "release-site.mjs"), [], clone)
    .ended;
  expect({ code, output: code === 0 ? "" : stdout + stderr }).toEqual({ code: 0, output: "" });
}

/** Paths of the files that the origin has on gh-pages. */
async function published(): Promise<string[]> {
  const list = await git(origin, "ls-tree", "-r", "--name-only", "gh-pages");
  return list.trim().split("\n");
}
