import { describe } from "vitest";
import { commandDifferences } from "./differences/command-differences.js";
import type { CommandCase } from "./support/cli/command-case.js";
import { playCommand } from "./support/cli/play-command.js";
import { loadLines } from "./support/load-cases.js";
import { replay } from "./support/replay.js";

const cases = loadLines<CommandCase>("config/cli.jsonl").map((recorded) => ({
  ...recorded,
  id: `cli/${recorded.id}`,
}));

describe("recorded command lines", () => {
  replay<CommandCase>({
    cases,
    differences: commandDifferences,
    run: (_recorded, intended) => playCommand(intended(undefined)),
  });
});
