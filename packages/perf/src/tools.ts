import { VERSION } from "@tritonjs/core/internal";
import { Command } from "commander";
import type { Terminal } from "./command/terminal.js";
import { runCommand } from "./command/tool-command.js";

/** A command that loads its own part when it is called. Its options and help come with that part. */
export interface Tool {
  /** Line for a list of commands. */
  readonly description: string;
  readonly usage: string;
  load(): Promise<(args: readonly string[], terminal: Terminal) => Promise<number>>;
}

/** The commands that measure and tune, by their names. */
export const TOOLS: Readonly<Record<string, Tool>> = {
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
  optimize: {
    description: "make smaller and faster forms of a trained model, and write the best as a model to serve",
    usage: "<model> [options]",
    load: async () => (await import("./optimize/optimize-command.js")).optimizeCommand,
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

/** Adds the commands of a table to the list that the help of `program` shows. */
export function listTools(program: Command, tools: Readonly<Record<string, Tool>>): Command {
  for (const [name, { description, usage }] of Object.entries(tools))
    program.addCommand(new Command(name).description(description).usage(usage));
  return program;
}

/**
 * Runs the command `tritonjs-perf`, whose commands are those of {@link TOOLS}.
 *
 * @param args arguments after the name of the command
 * @returns the exit code
 */
export async function runTools(args: readonly string[], terminal: Terminal): Promise<number> {
  const [name, ...rest] = args;
  if (name !== undefined && Object.hasOwn(TOOLS, name)) {
    const tool = await TOOLS[name]!.load();
    return tool(rest, terminal);
  }
  const program = new Command("tritonjs-perf")
    .description(
      "Measures and tunes servers of the v2 protocol. @tritonjs/cli has the same commands, as `tritonjs perf` and so on.",
    )
    .version(VERSION)
    .showHelpAfterError("Run 'tritonjs-perf --help' for the commands.");
  return runCommand(listTools(program, TOOLS), args, { terminal, faultCode: 1 }, () => 0);
}
