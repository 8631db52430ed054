import { VERSION } from "@tritonjs/core/internal";
import { Command, Option as HelpOption } from "commander";
import type { CommandContext, Extensions, Terminal } from "./command-context.js";
import { completionCommand } from "./commands/completion-command.js";
import { configCommand, typesCommand } from "./commands/config-command.js";
import { initCommand } from "./commands/init-command.js";
import { OptionError } from "./options/option.js";
import { optionGroups } from "./options/options.js";
import { runCommand } from "./tool-command.js";

/**
 * Runs the command `tritonjs`. With your own backends, it makes a command of your own.
 *
 * @param args arguments after the name of the command
 * @returns the exit code
 *
 * @example
 * ```ts
 * process.exitCode = await run(process.argv.slice(2), processTerminal, { backends: { shout } });
 * ```
 */
export async function run(
  args: readonly string[],
  terminal: Terminal,
  extensions: Extensions = {},
): Promise<number> {
  const [command, ...rest] = args;
  // `serve` reads its options by the rules of getopt, like tritonserver. Commander only writes their help.
  const asksForHelp = rest.includes("--help") || (rest.length === 1 && rest[0] === "-h");
  if (command === "serve" && !asksForHelp) return runServe(rest, terminal, extensions);
  if (command !== undefined && Object.hasOwn(TOOLS, command)) {
    const tool = await TOOLS[command]!.load();
    return tool(rest, terminal);
  }
  let code = 0;
  const finish = (result: number) => {
    code = result;
  };
  const program = commandLine({ terminal, extensions, finish });
  return runCommand(program, args, { terminal, faultCode: 1 }, () => code);
}

async function runServe(
  args: readonly string[],
  terminal: Terminal,
  extensions: Extensions,
): Promise<number> {
  try {
    const { serve } = await import("./serve/serve.js");
    return await serve(args, terminal, extensions);
  } catch (error) {
    if (!(error instanceof OptionError)) throw error;
    const { place, message } = error;
    if (place === "after usage") terminal.writeError(serveHelp());
    terminal.writeError(`${message}\n`);
    if (place === "before usage") terminal.writeError(serveHelp());
    return 1;
  }
}

export function commandLine(context: CommandContext): Command {
  const program = new Command("tritonjs")
    .description("Serves models with Triton's scheduling over its protocol, from Node.js.")
    .version(VERSION)
    .showHelpAfterError(
      "Run 'tritonjs --help' for the commands. Options of tritonserver go with 'tritonjs serve'.",
    )
    .addCommand(serveCommand())
    .addCommand(configCommand(context))
    .addCommand(typesCommand(context))
    .addCommand(initCommand(context));
  for (const [name, { description, usage }] of Object.entries(TOOLS))
    program.addCommand(new Command(name).description(description).usage(usage));
  return program.addCommand(completionCommand(context));
}

function serveCommand(): Command {
  const command = new Command("serve").description("serve a model repository");
  for (const [group, options] of Object.entries(optionGroups)) {
    for (const [name, option] of Object.entries(options)) {
      const { argument, description, noEffect } = option;
      const value = argument === undefined ? "" : ` <${argument.replaceAll(/[<>]/g, "")}>`;
      const effect = noEffect === undefined ? "" : ` Has no effect: ${noEffect}.`;
      command.addOption(new HelpOption(`--${name}${value}`, description + effect).helpGroup(`${group}:`));
    }
  }
  return command;
}

function serveHelp(): string {
  return new Command("tritonjs").addCommand(serveCommand()).commands[0]!.helpInformation();
}

/** Commands that load their own part. They are in the list of commands; their options and help come with the part. */
const TOOLS: Readonly<Record<string, Tool>> = {
  perf: {
    description: "measure the throughput and latency of a model; `tritonjs perf --help` has the options",
    usage: "-m <model> [options]",
    load: async () => (await import("./perf/perf.js")).perf,
  },
  analyze: {
    description: "find the configuration of a model that meets a goal",
    usage: "--model-repository <folder> -m <models> [options]",
    load: async () => (await import("./analyze/analyze.js")).analyze,
  },
  replay: {
    description: "predict what other configurations would make of a recorded trace",
    usage: "<traces...> --config <file> [options]",
    load: async () => (await import("./trace/replay.js")).replayTrace,
  },
  trace: {
    description: "summarize trace files, or convert them for a viewer",
    usage: "summary|export <traces...> [options]",
    load: async () => (await import("./trace/inspect-trace.js")).inspectTrace,
  },
};

interface Tool {
  readonly description: string;
  readonly usage: string;
  load(): Promise<(args: readonly string[], terminal: Terminal) => Promise<number>>;
}
