import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { commandLine } from "../../src/run.js";
import { TestTerminal } from "../support/test-terminal.js";

it("the reference page has a row for each command, and for no other", () => {
  const { commands } = commandLine({ terminal: new TestTerminal(), extensions: {}, finish: () => undefined });
  const names = commands.flatMap((command) => {
    const below = command.commands.map((subcommand) => `${command.name()} ${subcommand.name()}`);
    return below.length > 0 ? below : [command.name()];
  });

  const page = readFileSync(new URL("../../../../docs/cli.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `tritonjs ([a-z ]+?)(?: [^a-z][^`]*)?` \|/gm)].map(
    ([, words]) => words!,
  );
  // The tools know the commands below some commands, such as those of `trace`.
  const documented = rows.map((words) => (names.includes(words) ? words : words.split(" ")[0]!));
  expect(documented.length).toBeGreaterThan(0);
  expect([...new Set(documented)].sort()).toEqual(names.sort());
});
