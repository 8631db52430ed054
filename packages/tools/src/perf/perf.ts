import { VERSION } from "@tritonjs/core/frontend";
import { statusText, TritonError } from "@tritonjs/protocol";
import { CommanderError } from "commander";
import { EXIT } from "./exit-codes.js";
import { perfOptions } from "./perf-options.js";
import { type PerfParts, realParts } from "./perf-parts.js";
import { PerfRun } from "./perf-run.js";
import type { PerfTerminal } from "./perf-terminal.js";
import { readSettings, settingWarnings } from "./read-settings.js";

/**
 * Runs the command `tritonjs perf`: measures a model and writes the reports.
 *
 * @param args arguments after the name of the command
 * @returns the exit code: 0 for a measurement, 1 if a condition of `--assert` does not hold, 2 if a level is not stable,
 * 3 if no request ended within a window, 130 if it was interrupted, 99 for other faults
 *
 * @example
 * ```ts
 * import { processTerminal } from "@tritonjs/cli";
 * import { perf } from "@tritonjs/tools";
 *
 * process.exitCode = await perf(["-m", "linear", "--concurrency-range", "1:16"], processTerminal);
 * ```
 */
export async function perf(args: readonly string[], terminal: PerfTerminal): Promise<number> {
  return perfWith(args, terminal, realParts);
}

/** `perf` with other parts. */
export async function perfWith(
  args: readonly string[],
  terminal: PerfTerminal,
  parts: PerfParts,
): Promise<number> {
  try {
    const command = perfOptions(VERSION)
      .exitOverride()
      .configureOutput({
        writeOut: (text) => terminal.write(text),
        writeErr: (text) => terminal.writeError(text),
      });
    // perf_analyzer has this name of --help too.
    const given = args.map((argument) => (argument === "-?" ? "--help" : argument));
    command.parse(given, { from: "user" });
    const settings = readSettings(command.opts(), ["tritonjs perf", ...args.map(quoted)].join(" "));
    for (const warning of settingWarnings(settings)) terminal.writeError(`[WARNING] ${warning}\n`);
    return await new PerfRun(settings, terminal, parts).run();
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.error;
    if (!TritonError.is(error)) throw error;
    terminal.writeError(`error: ${statusText(error)}\n`);
    return EXIT.error;
  }
}

/** An argument as a shell reads it. */
function quoted(argument: string): string {
  return /^[\w./:=@,+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}
