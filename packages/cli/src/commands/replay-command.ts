import { Command } from "commander";
import type { Terminal } from "../terminal.js";

/** The command `replay`, for the list of commands only: the tools have its options and its help. */
export function replayCommand(): Command {
  return new Command("replay")
    .description("predict what other configurations would make of a recorded trace")
    .usage("<traces...> --config <file> [options]");
}

/** `tritonjs replay`. The tools are loaded here, because most commands do not need them. */
export async function runReplayCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  const tools = await import("@tritonjs/tools");
  return tools.runReplay(args, terminal);
}
