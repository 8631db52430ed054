import { readFile } from "node:fs/promises";
import { readPrototxt } from "@tritonjs/core/config";
import { statusText, TritonError } from "@tritonjs/protocol";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { writeReport } from "../report/write-report.js";
import { readTrace } from "./read-trace.js";
import { recordingOf } from "./recording.js";
import { type ReplayConfig, replay } from "./replay.js";
import { replayText } from "./replay-report.js";

/** Output of the command. */
export interface ReplayTerminal {
  write(text: string): void;
  writeError(text: string): void;
  /**
   * Resolves when the process is asked to stop. The second request ends the process at once.
   *
   * @param secondExitCode exit code after the second request
   */
  stopRequested?(secondExitCode?: number): Promise<unknown>;
}

/** Exit code after an interruption: that of `tritonjs perf`. */
const INTERRUPTED = 130;

interface Options {
  readonly config: readonly string[];
  readonly model?: string;
  readonly speed: number;
  readonly json?: string;
}

const EXAMPLES = `
Examples:
  Record every request, then ask what another configuration would have made of them:
    tritonjs serve --model-repository=models --trace-config=level=TIMESTAMPS \\
      --trace-config=rate=1 --trace-config=triton,file=trace.json
    tritonjs replay trace.json --config models/resnet/config.pbtxt --config other.pbtxt

  The same with twice the load:
    tritonjs replay trace.json --config models/resnet/config.pbtxt --speed 2
`;

/**
 * Runs the command `tritonjs replay`: predicts what other configurations would have made of a recorded trace.
 *
 * @param args arguments after the name of the command
 * @returns the exit code: 0 for a prediction, 130 if it was interrupted, 1 for a fault, which was written to
 * the terminal
 */
export async function replayTrace(args: readonly string[], terminal: ReplayTerminal): Promise<number> {
  try {
    const command = replayOptions()
      .exitOverride()
      .configureOutput({
        writeOut: (text) => terminal.write(text),
        writeErr: (text) => terminal.writeError(text),
      })
      .parse(args, { from: "user" });
    const stop = new AbortController();
    void terminal.stopRequested?.(INTERRUPTED).then(() => {
      terminal.writeError(
        "Interrupted: the finished configurations are reported. A second Ctrl-C ends the command at once.\n",
      );
      stop.abort();
    });
    return await predict(command.args, command.opts<Options>(), terminal, stop.signal);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode;
    if (!TritonError.is(error)) throw error;
    terminal.writeError(`error: ${statusText(error)}\n`);
    return 1;
  }
}

function replayOptions(): Command {
  return new Command("tritonjs replay")
    .description("Predicts the latencies and batches of a recorded trace with other configurations.")
    .argument("<traces...>", "trace files of one recording")
    .requiredOption("--config <file>", "a config.pbtxt to replay with; repeatable", collect)
    .option("--model <name>", "model of the trace, if it has several")
    .option("--speed <factor>", "divide the gaps between arrivals by this factor", positive, 1)
    .option("--json <file>", "write the figures as JSON")
    .addHelpText("after", EXAMPLES);
}

async function predict(
  paths: readonly string[],
  { config: files, model, speed, json }: Options,
  terminal: ReplayTerminal,
  signal: AbortSignal,
): Promise<number> {
  const configs = await Promise.all(files.map(readConfig));
  const result = await replay(recordingOf(await readTrace(paths), model), configs, {
    speed,
    signal,
    onConfig: (name, index) => {
      if (configs.length > 1)
        terminal.writeError(`replaying with ${name} (${index + 1} of ${configs.length})\n`);
    },
  });
  terminal.write(replayText(result));
  if (result.interrupted) {
    const { length } = result.predictions;
    terminal.writeError(`interrupted: ${length} of ${configs.length} configurations were replayed\n`);
  }
  if (json !== undefined) {
    const fault = await writeReport(json, `${JSON.stringify(result, undefined, 2)}\n`);
    if (fault !== undefined) throw new TritonError("INTERNAL", fault);
  }
  return result.interrupted ? INTERRUPTED : 0;
}

async function readConfig(path: string): Promise<ReplayConfig> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new TritonError("INVALID_ARG", `cannot read the configuration: ${(error as Error).message}`);
  }
  return { name: path, config: readPrototxt(text, path) };
}

function collect(file: string, files: readonly string[] = []): string[] {
  return [...files, file];
}

function positive(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value < Number.POSITIVE_INFINITY)) {
    throw new InvalidArgumentError(`expected a positive number, got '${text}'`);
  }
  return value;
}
