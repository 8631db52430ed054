import type { Command, Option as CommanderOption } from "commander";
import type { Option } from "../options/option.js";
import { optionGroups } from "../options/options.js";

/** The values that a shell proposes: files, directories, words, or none. */
export type Proposal = "file" | "directory" | readonly string[];

/** An option, as a shell completes it. */
export interface CompletedOption {
  /** With its dashes. */
  readonly name: string;
  readonly description: string;
  /** What its value may be; undefined for an option without a value. */
  readonly value?: Proposal | undefined;
  /** Whether it may be given several times. */
  readonly repeats: boolean;
}

/** A command, as a shell completes it. */
export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** What its arguments may be; undefined for a command without arguments. */
  readonly argument?: Proposal | undefined;
  readonly commands: readonly CompletedCommand[];
}

/** The commands and options to complete. Those of `serve` come from the table of options. */
export function completionTree(program: Command): CompletedCommand {
  const commands = program.commands.map(completionTree);
  const [argument] = program.registeredArguments;
  const isServe = program.name() === "serve";
  return {
    name: program.name(),
    description: program.description(),
    options: [...(isServe ? serveOptions() : program.options.flatMap(optionOf)), HELP],
    ...(argument !== undefined && { argument: argument.argChoices ?? "file" }),
    commands,
  };
}

const HELP: CompletedOption = { name: "--help", description: "display help for command", repeats: false };

function optionOf({
  long,
  description,
  required,
  optional,
  argChoices,
  flags,
}: CommanderOption): CompletedOption[] {
  if (long === undefined || long === null) return [];
  const takesValue = required || optional;
  const proposal = argChoices ?? (/<(file|folder|directory|path)>/.test(flags) ? "file" : []);
  return [{ name: long, description, repeats: false, ...(takesValue && { value: proposal }) }];
}

function serveOptions(): CompletedOption[] {
  return Object.values(optionGroups).flatMap((group) =>
    Object.entries(group as Record<string, Option<unknown>>).map(([name, option]) => {
      const { argument, description, initial, completes, noEffect } = option;
      return {
        name: `--${name}`,
        description: noEffect === undefined ? firstSentence(description) : `no effect: ${noEffect}`,
        repeats: Array.isArray(initial),
        ...(argument !== undefined && {
          value:
            completes ?? (argument === "boolean" ? ["true", "false"] : argument === "file" ? "file" : []),
        }),
      };
    }),
  );
}

function firstSentence(description: string): string {
  return description.replace(/\.(?: .*)?$/s, "");
}
