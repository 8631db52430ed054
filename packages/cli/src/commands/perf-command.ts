import { Command } from "commander";
import type { Terminal } from "../terminal.js";

/** The command `perf`, for the list of commands only: the tools have its options and its help. */
export function perfCommand(): Command {
  return new Command("perf")
    .description("measure the throughput and latency of a model; `tritonjs perf --help` has the options")
    .usage("-m <model> [options]");
}

/** `tritonjs perf`. The tools are loaded here, because no other command needs them. */
export async function runPerf(args: readonly string[], terminal: Terminal): Promise<number> {
  const { perf } = await import("@tritonjs/tools");
  return perf(args, terminal);
}
