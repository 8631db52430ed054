import { statusText, TritonError } from "@tritonjs/protocol";
import { CommanderError } from "commander";
import { runAnalyze } from "./commands/analyze-command.js";
import { commandLine } from "./commands/command-line.js";
import { runPerf } from "./commands/perf-command.js";
import { runReplay } from "./commands/replay-command.js";
import { serveHelp } from "./commands/serve-help.js";
import { runTrace } from "./commands/trace-command.js";
import type { Extensions } from "./extensions.js";
import { OptionError } from "./options/option-error.js";
import { serve } from "./serve/serve.js";
import type { Terminal } from "./terminal.js";

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
