import { Command } from "commander";
import type { Terminal } from "../terminal.js";

/** The command `analyze`, for the list of commands only: the tools have its options and its help. */
export function analyzeCommand(): Command {
  return new Command("analyze")
    .description("find the configuration of a model that meets a goal")
    .usage("--model-repository <folder> -m <models> [options]");
}

/** `tritonjs analyze`. The tools are loaded here, because most commands do not need them. */
export async function runAnalyze(args: readonly string[], terminal: Terminal): Promise<number> {
  const tools = await import("@tritonjs/tools");
  return tools.analyze(args, terminal);
}
