// The built package: its threads cannot run sources.
import { perf } from "@tritonjs/perf";
import { runTool } from "./run-tool.js";

/** Runs `tritonjs perf` with a command line whose arguments have no spaces. */
export const runCommand = (line: string) => runTool(perf, line.split(" "));
