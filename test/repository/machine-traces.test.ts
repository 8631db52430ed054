import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";

/** Text files of the repository. A copy that is not a git repository has no list of them. */
const isClone = existsSync(join(repositoryRoot, ".git"));
const files = isClone ? textFiles() : [];

describe.runIf(isClone)("no file of the repository", () => {
  // Built from parts here, so that this file does not contain them.
  it.each([
    ["paths of the machine it was written on", new RegExp(["/wo", "rk/"].join(""))],
    ["home folders", /(?:^|[\s"'(])\/(?:home|Users|root)\/\w/m],
    ["a package registry", new RegExp(["\\bregis", "try\\.(?!test\\.)[a-z0-9-]+\\.[a-z]{2,}"].join(""))],
    ["an .npmrc's token", new RegExp(["_auth", "Token"].join(""))],
  ])("contains %s", (_what, pattern) => {
    expect(files.filter(({ text }) => pattern.test(text)).map(({ path }) => path)).toEqual([]);
  });
});

describe("the repository", () => {
  it("is licensed under Apache-2.0", () => {
    const licence = readFileSync(join(repositoryRoot, "LICENSE"), "utf8");
    expect(licence).toMatch(/Apache License\s+Version 2\.0, January 2004/);
    for (const folder of [".", "packages/core", "packages/http", "packages/grpc"]) {
      const manifest = JSON.parse(readFileSync(join(repositoryRoot, folder, "package.json"), "utf8"));
      expect(manifest.license).toBe("Apache-2.0");
    }
  });

  it("has a lockfile that names packages by their checksums, not by their source", () => {
    const lock = readFileSync(join(repositoryRoot, "pnpm-lock.yaml"), "utf8");
    expect(lock).toContain("integrity: sha512-");
    expect(lock).not.toMatch(/tarball:|https?:\/\//);
  });
});

function textFiles() {
  const listed = execFileSync("git", ["ls-files", "-z"], { cwd: repositoryRoot, encoding: "utf8" });
  return listed
    .split("\0")
    .filter((path) => path !== "")
    .filter((path) => statSync(join(repositoryRoot, path), { throwIfNoEntry: false })?.isFile() === true)
    .map((path) => ({ path, text: readFileSync(join(repositoryRoot, path), "utf8") }))
    .filter(({ text }) => !text.includes("\0"));
}
