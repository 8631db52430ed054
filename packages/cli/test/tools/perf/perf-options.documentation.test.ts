import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { perfOptions } from "../../../src/perf/perf-options.js";
import { readSettings } from "../../../src/perf/perf-settings.js";

const page = readFileSync(
  fileURLToPath(new URL("../../../../../docs/performance-tools.md", import.meta.url)),
  "utf8",
).replaceAll("\r\n", "\n");

/** Arguments of a command line, with quotes as a shell reads them. */
function argumentsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!).slice(2);
}

const commands = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block]) =>
  block!.trimEnd().split("\n"),
);

describe("the page about the performance tools", () => {
  it.each(commands.filter((line) => line.startsWith("tritonjs perf")))(
    "has a command that is read: %s",
    (line) => {
      const command = perfOptions("0").exitOverride();
      command.parse(argumentsOf(line), { from: "user" });
      expect(readSettings(command.opts(), line).description.command).toBe(line);
    },
  );

  it("lists every option of the command, and no other", () => {
    const [, table = ""] = /## Options\n(.*?)\n\n`tritonjs perf --help`/s.exec(page) ?? [];
    const listed = [...table.matchAll(/`(--[\w-]+)`/g)].map(([, name]) => name!);
    expect(listed.toSorted()).toEqual(
      perfOptions("")
        .options.flatMap(({ hidden, long }) => (hidden || !long ? [] : [long]))
        .filter((name) => name !== "--version")
        .toSorted(),
    );
  });

  it("names every exit code that the help names", () => {
    const codesOf = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, code]) => code);
    const [, table = ""] = /## Exit codes\n(.*?)\n\n`--assert`/s.exec(page) ?? [];
    let help = "";
    perfOptions("0")
      .configureOutput({
        writeOut: (text) => {
          help += text;
        },
      })
      .outputHelp();
    expect(codesOf(table, /^\| (\d+) \|/gm)).toEqual(codesOf(help.split("Exit codes:")[1]!, /^ {2}(\d+) /gm));
  });
});
