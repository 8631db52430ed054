import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { VERSION } from "@tritonjs/core/internal";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";
import { documents, relativeLinks } from "./markdown.js";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly scripts?: Readonly<Record<string, string>>;
}

function manifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(repositoryRoot, folder, "package.json"), "utf8"));
}

/** Commands of npm itself. */
const NPM_COMMANDS = ["ci", "exec", "install", "login", "pack", "publish", "rebuild"];

const scripts = manifest(".").scripts ?? {};
const [readme] = documents();

describe("the version", () => {
  it.each([".", ...readdirSync(join(repositoryRoot, "packages")).map((name) => `packages/${name}`)])(
    "in %s equals the one that the library reports",
    (folder) => expect(manifest(folder).version).toBe(VERSION),
  );
});

describe("the documents", () => {
  it.each(documents())("link to existing files: $path", (document) => {
    const missing = relativeLinks(document).filter(
      (target) => !existsSync(join(repositoryRoot, dirname(document.path), target)),
    );
    expect(missing).toEqual([]);
  });

  it.each(documents())("name existing npm scripts: $path", ({ text }) => {
    const named = [...text.matchAll(/`npm (?:run )?([a-z][\w:-]*)/g)].map(([, name]) => name!);
    const known = new Set([...Object.keys(scripts), ...packageScripts(), ...NPM_COMMANDS]);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });
});

it("the README lists every example and every page of docs/", () => {
  const links = new Set(relativeLinks(readme!));
  const examples = readdirSync(join(repositoryRoot, "examples"));
  const pages = readdirSync(join(repositoryRoot, "docs")).filter((name) => name.endsWith(".md"));
  const expected = [...examples.map((name) => `examples/${name}`), ...pages.map((name) => `docs/${name}`)];
  expect(expected.filter((target) => !links.has(target))).toEqual([]);
});

describe("the README's table of commands", () => {
  const table = [...readme!.text.matchAll(/^\| `npm (?:run )?([\w:]+)` \|/gm)].map(([, name]) => name!);

  it("lists only scripts of package.json", () => {
    expect(table.length).toBeGreaterThan(0);
    expect(table.filter((name) => !(name in scripts))).toEqual([]);
  });

  it("lists what a newcomer needs", () => {
    expect(table).toEqual(expect.arrayContaining(["start", "test"]));
  });
});

function packageScripts(): string[] {
  const folders = ["packages", "examples"].flatMap((parent) =>
    readdirSync(join(repositoryRoot, parent)).map((name) => join(parent, name)),
  );
  return folders.flatMap((folder) => Object.keys(manifest(folder).scripts ?? {}));
}
