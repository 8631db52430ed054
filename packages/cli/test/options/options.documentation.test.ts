import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import type { Option } from "../../src/options/option.js";
import { optionGroups } from "../../src/options/options.js";
import { run } from "../../src/run.js";
import { TestTerminal } from "../support/test-terminal.js";

const options = Object.values(optionGroups).flatMap((group) =>
  Object.entries(group as Record<string, Option<unknown>>),
);

describe("the command-line reference page", () => {
  it("contains the table generated from the options", async () => {
    const script = fileURLToPath(new URL("../../scripts/write-options-table.mjs", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script, "--print"]);
    expect(await readFile(new URL("../../../../docs/cli.md", import.meta.url), "utf8")).toBe(stdout);
    expect(options.map(([name]) => name).filter((name) => !stdout.includes(`| \`--${name}`))).toEqual([]);
  });
});

describe("the help text", () => {
  it("names every option, and says which have no effect and why", async () => {
    const terminal = new TestTerminal();
    await run(["serve", "--help"], terminal);
    for (const [name, { noEffect }] of options) {
      const line = terminal.output.split("\n").find((text) => text.trimStart().split(" ")[0] === `--${name}`);
      expect(line, name).toBeDefined();
      if (noEffect !== undefined) expect(line, name).toContain(`Has no effect: ${noEffect}.`);
    }
  });
});
