import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";

interface Feature {
  readonly name: string;
  readonly page: string;
  readonly example: string;
  readonly proofs: string;
}

/** Words of the README that join features. */
const JOINTS = new Set(["a", "an", "and", "by", "in", "of", "on", "or", "over", "that", "the", "to", "with"]);

const read = (path: string) => readFileSync(join(repositoryRoot, path), "utf8").replaceAll("\r\n", "\n");

/** The cells of the rows of a table, without its head. */
const rows = (text: string) =>
  [...text.matchAll(/^\| (.*) \|$/gm)]
    .slice(1)
    .map(([, row]) => row!.split(" | ").map((cell) => cell.trim()));

/** The text of a cell without its links. */
const plain = (cell: string) => cell.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1");

const [, table = ""] = /\n## Features\n(.*?)\n## /s.exec(read("README.md")) ?? [];
const parts = rows(table).map(([name, state]) => ({ name: plain(name!), state: plain(state!) }));

const sections = new Map(
  read("docs/features.md")
    .split("\n## ")
    .slice(1)
    .map((section) => {
      const [title] = section.split("\n", 1);
      const features = rows(section).map(
        ([name, page, example, proofs]): Feature => ({
          name: name!,
          page: page!,
          example: example!,
          proofs: proofs!,
        }),
      );
      return [title!.toLowerCase(), features] as const;
    }),
);

it("the page has the parts of the README's table, in its order", () => {
  expect([...sections.keys()]).toEqual(parts.map(({ name }) => name.toLowerCase()));
});

describe.each(parts)("$name", ({ name, state }) => {
  const features = sections.get(name.toLowerCase()) ?? [];

  it("has a row for each feature that the README names, and no other", () => {
    let rest = state;
    for (const feature of features.toSorted((a, b) => b.name.length - a.name.length)) {
      expect(rest, feature.name).toContain(feature.name);
      rest = rest.replace(feature.name, " ");
    }
    const left = rest.match(/[\w`/.-]*\w[\w`/.-]*/g) ?? [];
    expect(left.filter((word) => !JOINTS.has(word))).toEqual([]);
  });

  it("links each feature to an example, to which its page links too", () => {
    for (const { name, page, example } of features) {
      const [, folder] = /^\[[\w-]+\]\(\.\.\/(examples\/(?:tutorials\/)?[\w-]+)\)$/.exec(example) ?? [];
      expect(folder, name).toBeDefined();
      expect(existsSync(join(repositoryRoot, folder!, "README.md")), name).toBe(true);
      const [, document] = /\(([\w-]+\.md)/.exec(page)!;
      expect(read(`docs/${document}`).includes(folder!), `${name}: ${document} links to ${folder}`).toBe(
        true,
      );
    }
  });

  it("links each feature to its page and to tests that exist", () => {
    for (const { name, page, proofs } of features) {
      expect(page, name).toMatch(/^\[[\w -]+\]\([\w-]+\.md(?:#[\w-]+)?\)$/);
      const links = [...proofs.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, path]) => path!);
      expect(links.filter((path) => !existsSync(join(repositoryRoot, path)))).toEqual([]);
      const tests = links.filter((path) => path.endsWith(".test.ts"));
      expect(tests.length, name).toBeGreaterThan(0);
      // Some files make their tests in a function that they share with others, such as `replayHttp()`.
      expect(tests.filter((path) => !/^\s*(?:it|test|describe)[.(]|^\w+\(.*\);$/m.test(read(path)))).toEqual(
        [],
      );
    }
  });
});
