import { writeFile } from "node:fs/promises";
import { statusText, TritonError } from "@tritonjs/protocol";
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { readTrace } from "../replay/read-trace.js";
import type { TraceRequest } from "../replay/trace-request.js";
import { chromeTrace } from "./chrome-trace.js";
import { traceSummaryText } from "./summary-text.js";
import { summarizeTrace } from "./trace-summary.js";

/** Output of the command. */
export interface TraceTerminal {
  write(text: string): void;
  writeError(text: string): void;
}

const EXAMPLES = `
Examples:
  tritonjs trace summary trace.json
  tritonjs trace export trace.json --output chrome.json

  Open chrome.json at https://ui.perfetto.dev or in chrome://tracing.
`;

/**
 * Runs the command `tritonjs trace`: summarizes trace files, or converts them for a viewer.
 *
 * @param args arguments after the name of the command
 * @returns the exit code: 0, or 1 for a fault, which was written to the terminal
 */
export async function inspectTrace(args: readonly string[], terminal: TraceTerminal): Promise<number> {
  try {
    const program = new Command("tritonjs trace")
      .description("Reads trace files in Triton's format.")
      .addHelpText("after", EXAMPLES);
    for (const command of [summaryCommand(terminal), exportCommand(terminal)]) program.addCommand(command);
    for (const command of [program, ...program.commands]) {
      command.exitOverride().configureOutput({
        writeOut: (text) => terminal.write(text),
        writeErr: (text) => terminal.writeError(text),
      });
    }
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode;
    if (!TritonError.is(error)) throw error;
    terminal.writeError(`error: ${statusText(error)}\n`);
    return 1;
  }
}

function summaryCommand(terminal: TraceTerminal): Command {
  return new Command("summary")
    .description("figures of each model, and the slowest requests")
    .argument("<traces...>", "trace files of one recording")
    .option("--model <name>", "only this model")
    .option("--slowest <count>", "number of slow requests to list", count, 5)
    .option("--json", "write JSON; durations are milliseconds")
    .action(async (paths: string[], options: { model?: string; slowest: number; json?: true }) => {
      const summary = summarizeTrace(await requestsOf(paths, options.model), options.slowest);
      terminal.write(options.json ? toJson(summary, 2) : traceSummaryText(summary));
    });
}

function exportCommand(terminal: TraceTerminal): Command {
  return new Command("export")
    .description("convert to a format that browsers show as a timeline")
    .argument("<traces...>", "trace files of one recording")
    .addOption(
      new Option("--format <name>", "chrome: Perfetto and chrome://tracing")
        .choices(["chrome"])
        .default("chrome"),
    )
    .option("--model <name>", "only this model")
    .option("--output <file>", "file to write; by default standard output")
    .action(async (paths: string[], { model, output }: { model?: string; output?: string }) => {
      const text = toJson(chromeTrace(await requestsOf(paths, model)));
      if (output === undefined) return terminal.write(text);
      await writeFile(output, text).catch((error: Error) => {
        throw new TritonError("INTERNAL", `cannot write the exported trace: ${error.message}`);
      });
      terminal.write(`wrote ${output}: open it at https://ui.perfetto.dev\n`);
    });
}

async function requestsOf(paths: readonly string[], model: string | undefined): Promise<TraceRequest[]> {
  const trace = await readTrace(paths);
  if (trace.length === 0) {
    throw new TritonError(
      "INVALID_ARG",
      "cannot read the trace: expected requests with timestamps, got none; record with level TIMESTAMPS",
    );
  }
  const chosen = model === undefined ? trace : trace.filter(({ modelName }) => modelName === model);
  if (chosen.length > 0) return chosen;
  const names = [...new Set(trace.map(({ modelName }) => modelName))].join(", ");
  throw new TritonError("NOT_FOUND", `model '${model}' is not in the trace, which has ${names}`);
}

/** Ids of sequences may be bigints. */
function toJson(value: unknown, indent?: number): string {
  const plain = (_key: string, one: unknown) => (typeof one === "bigint" ? String(one) : one);
  return `${JSON.stringify(value, plain, indent)}\n`;
}

function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || text.trim() === "") {
    throw new InvalidArgumentError(`expected a non-negative integer, got '${text}'`);
  }
  return value;
}
