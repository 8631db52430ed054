import { readFile } from "node:fs/promises";
import { readPrototxt } from "@tritonjs/core/config";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { Command, InvalidArgumentError } from "commander";
import { decimals, writeReport } from "../report/write-report.js";
import { type SimulatedBatch, type SimulationResult, simulate } from "../simulate/simulate.js";
import { EXIT, runCommand, stopSignal, type ToolTerminal } from "../tool-command.js";
import { BatchDurations, type Recording, readTrace, recordingOf } from "./read-trace.js";

/** A configuration to replay a recording with. */
export interface ReplayConfig {
  /** Name in the report: the file of the configuration. */
  readonly name: string;
  readonly config: ModelConfig;
}

/** Options of {@link replay}. */
export interface ReplayOptions {
  /** Divides the gaps between arrivals: 2 for twice the load. @default 1 */
  readonly speed?: number;
  /** Ends the replay early. The result has the configurations that were finished before. */
  readonly signal?: AbortSignal;
  /** Called before a configuration is played. */
  onConfig?(name: string, index: number): void;
}

/** Figures of a recording, and their prediction for each configuration. */
export interface ReplayResult {
  readonly model: string;
  readonly recorded: ReplayFigures;
  /** Requests of the trace that ran in no batch, and were not replayed. */
  readonly leftOut: number;
  /** Duration of a batch that was learned from the recording: `fixedMs + perRowMs * rows`. */
  readonly duration: { readonly fixedMs: number; readonly perRowMs: number };
  /** Largest batch of the recording. Durations of larger ones are extrapolated. */
  readonly largestRecordedBatch: number;
  readonly predictions: readonly {
    readonly name: string;
    readonly figures: ReplayFigures;
    /** Largest batch of the replay. */
    readonly largestBatch: number;
  }[];
  /** The replay was interrupted before all configurations were played. */
  readonly interrupted?: boolean;
}

/**
 * Plays the arrivals of a recording through the library's scheduler under other configurations, on a virtual clock.
 * Durations of batches are learned from the recorded ones. The same recording always gives the same prediction.
 *
 * @throws TritonError for a configuration that cannot be served
 * @example
 * ```ts
 * const recording = recordingOf(await readTrace(["trace.json"]));
 * const config = readPrototxt(await readFile("config.pbtxt"));
 * const { predictions } = await replay(recording, [{ name: "config.pbtxt", config }]);
 * console.log(predictions[0].figures.latencyMs.p99);
 * ```
 */
export async function replay(
  recording: Recording,
  configs: readonly ReplayConfig[],
  { speed = 1, signal, onConfig }: ReplayOptions = {},
): Promise<ReplayResult> {
  const { batches, instances, respondMs, gapMs, wakeMs } = recording;
  const requests = recording.requests.map((one) => ({ ...one, atMs: one.atMs / speed }));
  const durations = new BatchDurations(batches);
  const times = {
    duration: (rows: number, atMs: number) => durations.at(atMs * speed, rows),
    gapMs,
    wakeMs,
  };
  const predictions = [];
  for (const [index, { name, config }] of configs.entries()) {
    if (signal?.aborted) break;
    onConfig?.(name, index);
    const result = await simulate({ config, instances, requests, times, signal }).catch((error: unknown) => {
      if (signal?.aborted) return undefined;
      throw error;
    });
    if (result === undefined) break;
    const largestBatch = result.batches.reduce((most, { rows }) => Math.max(most, rows), 0);
    predictions.push({ name, figures: predictedFigures(result, respondMs), largestBatch });
  }
  return {
    model: recording.modelName,
    recorded: recordedFigures(recording),
    leftOut: recording.leftOut,
    duration: durations.line,
    largestRecordedBatch: batches.reduce((most, { rows }) => Math.max(most, rows), 0),
    predictions,
    ...(signal?.aborted && predictions.length < configs.length && { interrupted: true }),
  };
}

interface Options {
  readonly config?: readonly string[];
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

  Compare the answers to captured requests with those of another server:
    tritonjs replay captures/*.parquet --against http://localhost:8000 --compare class
`;

/**
 * Runs the command `tritonjs replay`: predicts what other configurations would have made of a recorded trace.
 *
 * @param args arguments after the name of the command
 * With `--against` it compares answers instead.
 *
 * @returns the exit code: 0 for a prediction and for answers that agree, 1 for answers that do not, 130 if it was interrupted, 1 for a fault, which was written to
 * the terminal
 */
export async function replayTrace(args: readonly string[], terminal: ToolTerminal): Promise<number> {
  const command = replayOptions();
  return runCommand(command, args, { terminal, faultCode: 1 }, () => {
    const { signal } = stopSignal(terminal, "the finished configurations are reported");
    const options = command.opts<Options & AgainstOptions>();
    if (options.against !== undefined) {
      return replayAgainst(command.args, { ...options, against: options.against }, terminal, signal);
    }
    if (options.config === undefined) {
      throw new TritonError(
        "INVALID_ARG",
        "expected --config for traces, or --against for captures, got neither",
      );
    }
    return predict(command.args, command.opts<Options>(), terminal, signal);
  });
}

function replayOptions(): Command {
  return new Command("tritonjs replay")
    .description(
      "Predicts the latencies and batches of a recorded trace with other configurations, or compares the answers to " +
        "captured requests with those of a server or a model repository.",
    )
    .argument("<traces...>", "trace files of one recording, or captures")
    .option(
      "--against <target>",
      "URL of a server, or directory of a model repository, that answers captures again",
    )
    .option("--model-version <version>", "version that answers captures: a number, or `captured`", "")
    .option("--compare <how>", "how answers are compared: tolerance, equal or class", comparison)
    .option("--absolute <number>", "tolerance of the comparison", positive, 1e-5)
    .option(
      "--relative <number>",
      "tolerance of the comparison, relative to the captured number",
      positive,
      1e-3,
    )
    .option("--slice <name>", "report by rows, version or parameter:<name> too; repeatable", collect)
    .option("--config <file>", "a config.pbtxt to replay with; repeatable", collect)
    .option("--model <name>", "model of the trace, if it has several")
    .option("--speed <factor>", "divide the gaps between arrivals by this factor", positive, 1)
    .option("--json <file>", "write the figures as JSON")
    .addHelpText("after", EXAMPLES);
}

async function predict(
  paths: readonly string[],
  { config: files = [], model, speed, json }: Options,
  terminal: ToolTerminal,
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
  return result.interrupted ? EXIT.interrupted : EXIT.ok;
}

interface AgainstOptions {
  readonly against?: string;
  readonly modelVersion: string;
  readonly compare?: "tolerance" | "equal" | "class";
  readonly absolute: number;
  readonly relative: number;
  readonly slice?: readonly string[];
}

/** Sends captured requests again, and compares the answers. */
async function replayAgainst(
  paths: readonly string[],
  options: Options & AgainstOptions & { readonly against: string },
  terminal: ToolTerminal,
  signal: AbortSignal,
): Promise<number> {
  const {
    against,
    modelVersion,
    compare = "tolerance",
    absolute,
    relative,
    slice = [],
    model,
    json,
  } = options;
  const other = slice.find((name) => !/^(rows|version|parameter:.+)$/.test(name));
  if (other !== undefined) {
    throw new TritonError(
      "INVALID_ARG",
      `--slice: expected rows, version or parameter:<name>, got '${other}'`,
    );
  }
  const { answersText, openAnswerTarget, readCapture, replayAnswers } = await import("./replay-answers.js");
  const all = await readCapture(paths);
  const rows = model === undefined ? all : all.filter((row) => row.model === model);
  if (rows.length === 0)
    throw new TritonError("INVALID_ARG", "expected captured requests to replay, got none");
  const target = await openAnswerTarget(against, [...new Set(rows.map((row) => row.model))], modelVersion);
  try {
    const by = compare === "tolerance" ? { absolute, relative } : compare;
    const report = await replayAnswers(rows, target, against, { by, slices: slice, signal });
    terminal.write(answersText(report));
    if (json !== undefined) {
      const fault = await writeReport(json, `${JSON.stringify(report, undefined, 2)}\n`);
      if (fault !== undefined) throw new TritonError("INTERNAL", fault);
    }
    if (signal.aborted) return EXIT.interrupted;
    return report.agrees ? EXIT.ok : EXIT.notMet;
  } finally {
    await target.close();
  }
}

function comparison(text: string): string {
  if (["tolerance", "equal", "class"].includes(text)) return text;
  throw new InvalidArgumentError(`expected tolerance, equal or class, got '${text}'`);
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

/** Figures of a recording, or of its replay with a configuration. */
export interface ReplayFigures {
  /** Requests that were answered. */
  readonly answered: number;
  /** Number of requests that failed, by error text. */
  readonly failures: Readonly<Record<string, number>>;
  /** Answered requests a second. */
  readonly throughput: number;
  /** Milliseconds from arrival to response. */
  readonly latencyMs: Readonly<Record<"mean" | "p50" | "p90" | "p95" | "p99" | "max", number>>;
  readonly batches: number;
  /** Mean number of rows of a batch. */
  readonly meanBatchRows: number;
  /** Number of batches by the reason why they were cut. */
  readonly cuts: Readonly<Record<string, number>>;
  readonly instances: number;
  /** Share of the time in which the instances worked, 0 to 1. */
  readonly busy: number;
}

function recordedFigures({ latenciesMs, batches, instances, durationMs }: Recording): ReplayFigures {
  const cuts: Record<string, number> = {};
  for (const { cut } of batches) if (cut !== undefined) cuts[cut] = (cuts[cut] ?? 0) + 1;
  return figuresOf({ latenciesMs, batches, instances, durationMs, cuts, failures: new Map() });
}

function predictedFigures(result: SimulationResult, respondMs: number): ReplayFigures {
  const latenciesMs = result.latenciesMs.map((one) => one + respondMs);
  const cuts = Object.fromEntries(Object.entries(result.cuts).filter(([, count]) => count > 0));
  return figuresOf({ ...result, latenciesMs, cuts });
}

function figuresOf(run: {
  readonly latenciesMs: Float64Array;
  readonly batches: readonly Pick<SimulatedBatch, "rows" | "startMs" | "endMs">[];
  readonly instances: number;
  readonly durationMs: number;
  readonly cuts: Readonly<Record<string, number>>;
  readonly failures: ReadonlyMap<string, number>;
}): ReplayFigures {
  const { batches, instances, durationMs, cuts } = run;
  const sorted = run.latenciesMs.filter((one) => !Number.isNaN(one)).sort();
  const answered = sorted.length;
  const at = (percentile: number) =>
    sorted[Math.floor((percentile / 100) * (answered - 1) + 0.5)] ?? Number.NaN;
  let [rows, busyMs] = [0, 0];
  for (const batch of batches) {
    rows += batch.rows;
    busyMs += batch.endMs - batch.startMs;
  }
  return {
    answered,
    failures: Object.fromEntries(run.failures),
    throughput: durationMs > 0 ? (1000 * answered) / durationMs : 0,
    latencyMs: {
      mean: sorted.reduce((sum, one) => sum + one, 0) / answered,
      p50: at(50),
      p90: at(90),
      p95: at(95),
      p99: at(99),
      max: sorted.at(-1) ?? Number.NaN,
    },
    batches: batches.length,
    meanBatchRows: batches.length === 0 ? 0 : rows / batches.length,
    cuts,
    instances,
    busy: durationMs > 0 ? Math.min(1, busyMs / (instances * durationMs)) : 0,
  };
}

/** Characters of the column of names, and of each column of figures. */
const NAMES = 22;
const COLUMN = 14;

/** Columns of figures beside each other: 80 characters in all. */
const MOST_COLUMNS = 4;

type Row = readonly [name: string, value: (figures: ReplayFigures) => string];

const ROWS: readonly Row[] = [
  ["Requests answered", ({ answered }) => String(answered)],
  [
    "Requests failed",
    ({ failures }) => String(Object.values(failures).reduce((sum, count) => sum + count, 0)),
  ],
  ["Requests a second", ({ throughput }) => decimals(throughput)],
  ...(["mean", "p50", "p90", "p95", "p99"] as const).map(
    (name): Row => [`Latency ${name}, ms`, ({ latencyMs }) => decimals(latencyMs[name])],
  ),
  ["Batches", ({ batches }) => String(batches)],
  ["Mean rows of a batch", ({ meanBatchRows }) => decimals(meanBatchRows)],
  ["Instances", ({ instances }) => String(instances)],
  ["Instances busy", ({ busy }) => `${Math.round(100 * busy)}%`],
];

/** Writes a replay as text: one column for the recording, and one for each configuration. Lines have 80 characters. */
export function replayText(result: ReplayResult): string {
  const columns = [
    { name: "recorded", figures: result.recorded },
    ...result.predictions.map(({ name, figures }) => ({ name, figures })),
  ];
  const reasons = [...new Set(columns.flatMap(({ figures }) => Object.keys(figures.cuts)))].sort();
  const rows: Row[] = [
    ...ROWS,
    ...reasons.map((reason): Row => [`Cut by ${reason}`, ({ cuts }) => String(cuts[reason] ?? 0)]),
  ];
  const { fixedMs, perRowMs } = result.duration;
  const lines = [
    `Model ${result.model}: a batch takes ${decimals(fixedMs)} ms + ${decimals(perRowMs)} ms for each row`,
  ];
  for (let first = 1; first === 1 || first < columns.length; first += MOST_COLUMNS - 1) {
    const shown = [columns[0]!, ...columns.slice(first, first + MOST_COLUMNS - 1)];
    const names = shown.map(({ name }) => fit(name));
    lines.push("", line("", names));
    for (const [name, value] of rows) {
      const cells = shown.map(({ figures }) => value(figures));
      lines.push(line(name, cells));
    }
  }
  lines.push(...notesOf(result));
  return `${lines.join("\n")}\n`;
}

function notesOf({ leftOut, largestRecordedBatch, predictions }: ReplayResult): string[] {
  const notes: string[] = [];
  if (leftOut > 0) notes.push(`${leftOut} requests of the trace ran in no batch, and were not replayed.`);
  for (const { name, largestBatch, figures } of predictions) {
    if (largestBatch > largestRecordedBatch) {
      notes.push(
        `${name}: batches of up to ${largestBatch} rows are extrapolated; the largest recorded one has ${largestRecordedBatch}.`,
      );
    }
    for (const [text, count] of Object.entries(figures.failures)) notes.push(`${name}: ${count} x ${text}`);
  }
  return notes.length === 0 ? [] : ["", ...notes];
}

function line(name: string, values: readonly string[]): string {
  return `${name.padEnd(NAMES)}${values.map((value) => value.padStart(COLUMN)).join("")}`.trimEnd();
}

function fit(name: string): string {
  return name.length < COLUMN ? name : `…${name.slice(2 - COLUMN)}`;
}
