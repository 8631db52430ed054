import { VERSION } from "@tritonjs/core/internal";
import { statusText, TritonError } from "@tritonjs/protocol";
import { Command, CommanderError, Option as HelpOption } from "commander";
import type { CommandContext, Extensions, Terminal } from "./command-context.js";
import { completionCommand } from "./commands/completion-command.js";
import { configCommand } from "./commands/config-command.js";
import { initCommand } from "./commands/init-command.js";
import { typesCommand } from "./commands/types-command.js";
import { OptionError } from "./options/option.js";
import { optionGroups } from "./options/options.js";
import { serve } from "./serve/serve.js";

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
  if (command === "perf") return runPerf(rest, terminal);
  if (command === "analyze") return runAnalyze(rest, terminal);
  if (command === "replay") return runReplay(rest, terminal);
  if (command === "trace") return runTrace(rest, terminal);
  try {
    let code = 0;
    const finish = (result: number) => {
      code = result;
    };
    const program = commandLine({ terminal, extensions, finish });
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode;
    if (!TritonError.is(error)) throw error;
    terminal.writeError(`error: ${statusText(error)}\n`);
    return 1;
  }
}

async function runServe(
  args: readonly string[],
  terminal: Terminal,
  extensions: Extensions,
): Promise<number> {
  try {
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

/** Builds the program with all commands. */
export function commandLine(context: CommandContext): Command {
  const { terminal } = context;
  const program = new Command("tritonjs")
    .description("Serves models with Triton's scheduling over its protocol, from Node.js.")
    .version(VERSION)
    .showHelpAfterError(
      "Run 'tritonjs --help' for the commands. Options of tritonserver go with 'tritonjs serve'.",
    )
    .addCommand(serveCommand())
    .addCommand(configCommand(context))
    .addCommand(typesCommand(context))
    .addCommand(initCommand(context))
    .addCommand(perfCommand())
    .addCommand(analyzeCommand())
    .addCommand(replayCommand())
    .addCommand(traceCommand())
    .addCommand(completionCommand(context));
  for (const command of withSubcommands(program)) {
    command.exitOverride().configureOutput({
      writeOut: (text) => terminal.write(text),
      writeErr: (text) => terminal.writeError(text),
    });
  }
  return program;
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

/** The command `serve`, for the help only. */
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

/** The usage text of `serve`. */
function serveHelp(): string {
  return new Command("tritonjs").addCommand(serveCommand()).commands[0]!.helpInformation();
}

/** The command `perf`, for the list of commands only: the tools have its options and its help. */
export function perfCommand(): Command {
  return new Command("perf")
    .description("measure the throughput and latency of a model; `tritonjs perf --help` has the options")
    .usage("-m <model> [options]");
}

/** `tritonjs perf`. The tools are loaded here, because no other command needs them. */
export async function runPerf(args: readonly string[], terminal: Terminal): Promise<number> {
  const { perf } = await import("./tools.js");
  return perf(args, terminal);
}

/** The command `analyze`, for the list of commands only: the tools have its options and its help. */
function analyzeCommand(): Command {
  return new Command("analyze")
    .description("find the configuration of a model that meets a goal")
    .usage("--model-repository <folder> -m <models> [options]");
}

/** `tritonjs analyze`. The tools are loaded here, because most commands do not need them. */
async function runAnalyze(args: readonly string[], terminal: Terminal): Promise<number> {
  const tools = await import("./tools.js");
  return tools.analyze(args, terminal);
}

/** The command `replay`, for the list of commands only: the tools have its options and its help. */
function replayCommand(): Command {
  return new Command("replay")
    .description("predict what other configurations would make of a recorded trace")
    .usage("<traces...> --config <file> [options]");
}

/** `tritonjs replay`. The tools are loaded here, because most commands do not need them. */
async function runReplay(args: readonly string[], terminal: Terminal): Promise<number> {
  const tools = await import("./tools.js");
  return tools.replayTrace(args, terminal);
}

/** The command `trace`, for the list of commands only: the tools have its options and its help. */
function traceCommand(): Command {
  return new Command("trace")
    .description("summarize trace files, or convert them for a viewer")
    .usage("summary|export <traces...> [options]");
}

/** `tritonjs trace`. The tools are loaded here, because most commands do not need them. */
async function runTrace(args: readonly string[], terminal: Terminal): Promise<number> {
  const tools = await import("./tools.js");
  return tools.inspectTrace(args, terminal);
}
