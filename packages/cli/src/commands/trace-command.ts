import { Command } from "commander";
import type { Terminal } from "../terminal.js";

/** The command `trace`, for the list of commands only: the tools have its options and its help. */
export function traceCommand(): Command {
  return new Command("trace")
    .description("summarize trace files, or convert them for a viewer")
    .usage("summary|export <traces...> [options]");
}

/** `tritonjs trace`. The tools are loaded here, because most commands do not need them. */
export async function runTrace(args: readonly string[], terminal: Terminal): Promise<number> {
  const tools = await import("@tritonjs/tools");
  return tools.inspectTrace(args, terminal);
}
