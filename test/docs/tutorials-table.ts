import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../support/repository.js";

/** A program of docs/tutorials.md. */
export interface TutorialRow {
  readonly number: number;
  readonly program: string;
  /** Folder of `examples` and arguments of the program for each command of the row. */
  readonly commands: readonly { readonly example: string; readonly args: readonly string[] }[];
  readonly cells: readonly string[];
}

/** The table of programs of docs/tutorials.md. */
export function tutorialRows(): readonly TutorialRow[] {
  return tutorialPage()
    .split("\n")
    .filter((line) => /^\| \d+ \|/.test(line))
    .map((line) => {
      const cells = line.split("|").slice(1, -1);
      const trimmed = cells.map((cell) => cell.trim());
      const [number, program, , command] = trimmed as [string, string, string, string];
      const commands = [...command.matchAll(/`cd examples\/([\w/-]+) && npm start(?: -- ([^`]+))?`/g)].map(
        ([, example, args]) => ({ example: example!, args: args?.split(" ") ?? [] }),
      );
      return { number: Number(number), program, commands, cells: trimmed };
    });
}

export function tutorialPage(): string {
  return readFileSync(join(repositoryRoot, "docs/tutorials.md"), "utf8").replaceAll("\r\n", "\n");
}
