import { readFile } from "node:fs/promises";
import { TritonError } from "@tritonjs/protocol";
import { readPrototxt } from "@tritonjs/repository/config";
import { Command, InvalidArgumentError } from "commander";
import { EXIT, runCommand, stopSignal, type ToolTerminal } from "../command/tool-command.js";
import { decimals, writeJsonReport } from "../report/write-report.js";
import { type ReplayConfig, type ReplayFigures, type ReplayResult, replay } from "./predict.js";
import { readTrace } from "./read-trace.js";
import { recordingOf } from "./recording.js";

interface Options {
  readonly config?: readonly string[];
  readonly set?: readonly string[];
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

  The same day with deadlines, where requests of level 1 have 50 ms:
    tritonjs replay trace.json --config models/resnet/config.pbtxt --set deadlines=true --set deadline_level_ms=1=50,2=500

  Record the scheduling, replay it to the same batches, and ask why a request was late:
    tritonjs serve --model-repository=models --scheduling-tape=minute.tape
    tritonjs replay minute.tape --batches
    tritonjs replay minute.tape --explain checkout-77

  Ask the same of a running server, which keeps its last minute:
    tritonjs serve --model-repository=models --dashboard --scheduling-ring=60
    curl -o minute.tape http://localhost:8002/dashboard/api/recording
    tritonjs replay minute.tape --explain checkout-77

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
    const options = command.opts<Options & AgainstOptions & BatchesOptions>();
    if (options.batches === true || options.explain !== undefined) {
      return replayTapes(command.args, options, terminal);
    }
    if (options.against !== undefined) {
      return replayAgainst(command.args, { ...options, against: options.against }, terminal, signal);
    }
    if (options.config === undefined) {
      throw new TritonError(
        "INVALID_ARG",
        "expected --config for traces, or --against for captures, got neither",
      );
    }
    return predict(command.args, options, terminal, signal);
  });
}

function replayOptions(): Command {
  return new Command("tritonjs replay")
    .description(
      "Predicts the latencies and batches of a recorded trace with other configurations, or compares the answers to " +
        "captured requests with those of a server or a model repository.",
    )
    .argument("<traces...>", "trace files of one recording, captures, or recordings of the scheduling")
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
    .option("--batches", "replay recordings of the scheduling to the same batches, and compare each")
    .option("--explain <request>", "say for whom a request of a recording waited, by its id or its number")
    .option("--config <file>", "a config.pbtxt to replay with; repeatable", collect)
    .option("--set <parameter=value>", "a parameter to try too, such as deadlines=true; repeatable", collect)
    .option("--model <name>", "model of the trace, if it has several")
    .option("--speed <factor>", "divide the gaps between arrivals by this factor", positive, 1)
    .option("--json <file>", "write the figures as JSON")
    .addHelpText("after", EXAMPLES);
}

async function predict(
  paths: readonly string[],
  options: Options,
  terminal: ToolTerminal,
  signal: AbortSignal,
): Promise<number> {
  const { config: files = [], speed, json } = options;
  const set = settingsOf(options.set);
  const configs = await Promise.all(files.map(readConfig));
  const total = configs.length * (set === undefined ? 1 : 2);
  const trace = await readTrace(paths);
  const settings = {
    speed,
    signal,
    ...(set !== undefined && { set }),
    onConfig: (name: string, index: number) => {
      if (total > 1) terminal.writeError(`replaying with ${name} (${index + 1} of ${total})\n`);
    },
  };
  const result = await replay(recordingOf(trace, options.model), configs, settings);
  terminal.write(replayText(result));
  const { interrupted = false, predictions } = result;
  if (interrupted) {
    terminal.writeError(`interrupted: ${predictions.length} of ${total} configurations were replayed\n`);
  }
  await writeJsonReport(json, result);
  return interrupted ? EXIT.interrupted : EXIT.ok;
}

/** Reads `name=value`. A value may have further equals signs. */
function settingsOf(texts: readonly string[] | undefined): Readonly<Record<string, string>> | undefined {
  if (texts === undefined) return undefined;
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=");
      if (at <= 0) throw new TritonError("INVALID_ARG", `--set: expected <parameter>=<value>, got '${text}'`);
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

interface BatchesOptions {
  readonly batches?: boolean;
  readonly explain?: string;
}

/** Replays recordings of the scheduling, or explains one request of them. */
async function replayTapes(
  paths: readonly string[],
  { batches, explain, json }: Options & BatchesOptions,
  terminal: ToolTerminal,
): Promise<number> {
  const { explainRequest, replayScheduling, Tape, timelineOf } = await import(
    "@tritonjs/operations/time-travel"
  );
  const { configuredBatchers } = await import("@tritonjs/scheduling");
  const reports: object[] = [];
  let isSame = true;
  for (const path of paths) {
    const tape = await Tape.read(path);
    if (batches === true) {
      const replay = await replayScheduling(tape, { batcherOf: configuredBatchers() });
      isSame &&= replay.identical;
      const { difference } = replay;
      reports.push({ path, ...replay });
      const from = replay.fromMs === 0 ? "" : ` from ${replay.fromMs.toFixed(3)} ms on`;
      const numbers = `${replay.requests} requests, ${replay.batches} batches${from}`;
      terminal.write(
        difference === undefined
          ? `${path}: ${numbers}, identical\n`
          : `${path}: ${numbers}, then a difference at ${difference.atMs.toFixed(3)} ms of model '${difference.model}': ` +
              `expected ${difference.expected}, got ${difference.got}\n`,
      );
    }
    if (explain === undefined) continue;
    const explanation = explainRequest(timelineOf(tape), explain);
    reports.push({ path, ...explanation });
    terminal.write(explanation.text);
  }
  await writeJsonReport(json, reports);
  return isSame ? EXIT.ok : EXIT.notMet;
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
    await writeJsonReport(json, report);
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
    for (const [name, value] of [...rows, ...classRows(result)]) {
      const cells = shown.map(({ figures }) => value(figures));
      lines.push(line(name, cells));
    }
  }
  lines.push(...notesOf(result));
  return `${lines.join("\n")}\n`;
}

/** Rows for each class of requests with a time limit: the recording and its replays have the same classes. */
function classRows({ recorded }: ReplayResult): Row[] {
  return recorded.classes.flatMap(({ level, caller }) => {
    const of = (figures: ReplayFigures) =>
      figures.classes.find((one) => one.level === level && one.caller === caller)!;
    const name = caller === "" ? `level ${level}` : `${level} ${caller}`;
    return [
      [`In time, ${fit(name)}`, (figures) => percent(of(figures).inTime, of(figures).requests)],
      ["  late", (figures) => String(of(figures).late)],
      ["  refused", (figures) => String(of(figures).refused)],
    ] satisfies Row[];
  });
}

function percent(part: number, all: number): string {
  return `${((100 * part) / all).toFixed(1)}%`;
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
    for (const { level, caller, causes } of figures.classes) {
      const why = Object.entries(causes).sort(([, a], [, b]) => b - a);
      if (why.length === 0) continue;
      const list = why.map(([cause, count]) => `${cause} ${count}`).join(", ");
      notes.push(`${name}: lost of level ${level}${caller && ` ${caller}`}: ${list}`);
    }
  }
  return notes.length === 0 ? [] : ["", ...notes];
}

function line(name: string, values: readonly string[]): string {
  return `${name.padEnd(NAMES)}${values.map((value) => value.padStart(COLUMN)).join("")}`.trimEnd();
}

function fit(name: string): string {
  return name.length < COLUMN ? name : `…${name.slice(2 - COLUMN)}`;
}
