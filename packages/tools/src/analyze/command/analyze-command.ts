import { performance } from "node:perf_hooks";
import { VERSION } from "@tritonjs/core/frontend";
import { statusText, TritonError } from "@tritonjs/protocol";
import { CommanderError } from "commander";
import { ModuleMachine } from "../real/module-machine.js";
import { RepositoryMachine } from "../real/repository-machine.js";
import { analyzeOptions } from "./analyze-options.js";
import { ANALYZE_EXIT, type AnalyzeParts, type AnalyzeTerminal, runSearch } from "./analyze-run.js";
import { readAnalyzeSettings } from "./analyze-settings.js";

/**
 * Runs the command `tritonjs analyze`: finds the configuration of a model that meets a goal, and writes the reports.
 *
 * @param args arguments after the name of the command
 * @returns the exit code: 0 if a configuration meets the constraints, 1 if none does, 130 if it was interrupted, 99 for
 * other faults
 *
 * @example
 * ```ts
 * import { processTerminal } from "@tritonjs/cli";
 * import { analyze } from "@tritonjs/tools";
 *
 * process.exitCode = await analyze(["--model-repository", "models", "-m", "linear"], processTerminal);
 * ```
 */
export async function analyze(args: readonly string[], terminal: AnalyzeTerminal): Promise<number> {
  return analyzeWith(args, terminal, {
    openMachine: ({ source, models, measuring }) =>
      source.kind === "repository"
        ? RepositoryMachine.open(source.path, models, measuring)
        : ModuleMachine.open(source.path, models, measuring),
    now: () => performance.now(),
  });
}

/** `analyze` with other parts. */
export async function analyzeWith(
  args: readonly string[],
  terminal: AnalyzeTerminal,
  parts: AnalyzeParts,
): Promise<number> {
  try {
    const command = analyzeOptions(VERSION)
      .exitOverride()
      .configureOutput({
        writeOut: (text) => terminal.write(text),
        writeErr: (text) => terminal.writeError(text),
      });
    command.parse(args, { from: "user" });
    const settings = readAnalyzeSettings(command.opts(), ["tritonjs analyze", ...args.map(quoted)].join(" "));
    return await runSearch(settings, terminal, parts);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ANALYZE_EXIT.ok : ANALYZE_EXIT.error;
    if (!TritonError.is(error)) throw error;
    terminal.writeError(`error: ${statusText(error)}\n`);
    return ANALYZE_EXIT.error;
  }
}

/** An argument as a shell reads it. */
function quoted(argument: string): string {
  return /^[\w./:=@,+-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}
