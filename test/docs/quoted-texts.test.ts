import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { errorReasons } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../support/repository.js";

/** Texts of other programs, which no source of ours contains. */
const TEXTS_OF_OTHERS = [
  "ERR_REQUIRE_ESM",
  "ECONNREFUSED",
  "Failed to load shared library",
  "JS heap out of memory",
  "SIGSEGV",
];

/** The sources in which texts are looked up: without comments, and with strings over several lines joined. */
const sources = readdirSync(join(repositoryRoot, "packages"))
  .map((name) => join(repositoryRoot, "packages", name, "src"))
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFileSync(join(folder, file), "utf8")),
  )
  .map((text) => text.replace(/^\s*(?:\/?\*|\/\/).*$/gm, "").replace(/["`]\s*\+\s*["`]/g, ""))
  .join("\n");

const read = (page: string) =>
  readFileSync(join(repositoryRoot, "docs", page), "utf8").replaceAll("\r\n", "\n");

/** The cells of the first column of the tables below a heading, as texts in backticks. */
function quotedTexts(page: string, heading: RegExp): string[] {
  return page
    .split(/^## /m)
    .filter((section) => heading.test(section))
    .flatMap((section) => section.split("\n"))
    .filter((line) => line.startsWith("| "))
    .flatMap((line) => [...line.split(" | ")[0]!.matchAll(/`([^`]+)`/g)].map(([, text]) => text!));
}

/** The parts of a text that the sources contain as they are: those between placeholders and quotes. */
function fixedParts(text: string): string[] {
  return text
    .split(/\.\.\.|'/)
    .map((part) => part.trim())
    .filter((part) => part.length > 3);
}

/** Everything that a quoted text may come from. */
const known = [sources, ...Object.values(errorReasons).map(({ text }) => text), ...TEXTS_OF_OTHERS].join(
  "\n",
);

describe("the texts that the troubleshooting page quotes", () => {
  const texts = quotedTexts(
    read("troubleshooting.md"),
    /^(?:Installing|Models|Requests|Overload|Slow|Workers|Starting)/,
  ).filter((text) => / /.test(text) && !/^[\w/.-]+\(|^npm |^new /.test(text));

  it("are many", () => expect(texts.length).toBeGreaterThan(40));

  it.each(texts)("stand in the sources: %s", (text) => {
    expect(fixedParts(text).filter((part) => !known.includes(part))).toEqual([]);
  });
});

describe("the page of operations", () => {
  const page = read("operations.md");

  it("quotes lines of the log that the sources contain", () => {
    const lines = quotedTexts(page, /^Logs/).filter((text) => / /.test(text));
    expect(lines.length).toBeGreaterThan(5);
    expect(lines.filter((line) => !sources.includes(line) && !/^tritonjs /.test(line))).toEqual([]);
  });

  it("names metrics that the library has", () => {
    const names = new Set([...page.matchAll(/\b(?:nv|tritonjs)_\w+/g)].map(([name]) => name));
    names.delete("nv_");
    expect(names.size).toBeGreaterThan(12);
    expect([...names].filter((name) => !sources.includes(`"${name}"`))).toEqual([]);
  });
});

describe.each(["getting-started.md", "operations.md", "troubleshooting.md"])("the links of %s", (name) => {
  it("lead to headings that exist", () => {
    const links = [...read(name).matchAll(/\]\(([\w-]+\.md)?#([\w-]+)\)/g)];
    const missing = links.filter(([, page, anchor]) => !anchors(read(page ?? name)).has(anchor!));
    expect(missing.map(([link]) => link)).toEqual([]);
  });
});

function anchors(page: string): Set<string> {
  const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\w -]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}
