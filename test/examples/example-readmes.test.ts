import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { relativeLinks } from "../docs/markdown.js";
import { exampleFolder, readExampleReadme } from "../support/example-readme.js";
import { repositoryRoot } from "../support/repository.js";

const examples = readdirSync(join(repositoryRoot, "examples"));

describe.each(examples)("the README of examples/%s", (name) => {
  const text = existsSync(join(exampleFolder(name), "README.md")) ? readExampleReadme(name) : "";

  it("says what the example shows, how to run it, what it prints and what to read", () => {
    expect(text.split("\n").filter((line) => line.startsWith("#") && !/^# \d/.test(line))).toEqual([
      expect.stringMatching(/^# \w/),
      "## Run",
      "## Read",
    ]);
    const [, introduction] = /^# .*\n\n([^#]+)\n\n## Run\n/.exec(text) ?? [];
    expect(introduction?.length).toBeGreaterThan(60);
    expect(text).toMatch(/^## Run\n[\s\S]*\bExpected output\b[\s\S]*^(?:```text|# 200 .*)$[\s\S]*^## Read$/m);
  });

  it("names commands that the example has", () => {
    const { scripts = {} } = JSON.parse(readFileSync(join(exampleFolder(name), "package.json"), "utf8"));
    const [, run] = /^## Run\n.*?^```sh\n(.*?)^```$/ms.exec(text)!;
    expect(run).toMatch(/^(?:\w+=\S+ )?npm start$/m);
    const named = [...text.matchAll(/npm (?:run )?([a-z][\w:-]*)/g)].map(([, script]) => script!);
    // `npm run build` in the root is a script of the workspace.
    const known = ["install", "build", ...Object.keys(scripts)];
    expect(named.filter((script) => !known.includes(script))).toEqual([]);
    expect(scripts).toHaveProperty("start");
  });

  it("links to files that exist", () => {
    const missing = relativeLinks({ path: "", text }).filter(
      (target) => !existsSync(join(exampleFolder(name), target.replace(/^<(.*)>$/, "$1"))),
    );
    expect(missing).toEqual([]);
  });
});
