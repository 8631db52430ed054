import { writeFile } from "node:fs/promises";
import { TritonError } from "@tritonjs/protocol";
import { Command, InvalidArgumentError, Option } from "commander";
import { EXIT, runCommand, type ToolTerminal } from "../command/tool-command.js";
import { exactFigures } from "../measure/distribution.js";
import { decimals } from "../report/write-report.js";
import { readTrace, type TraceRequest } from "./read-trace.js";
import { groupBy } from "./recording.js";

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
export async function inspectTrace(args: readonly string[], terminal: ToolTerminal): Promise<number> {
  const program = new Command("tritonjs trace")
    .description("Reads trace files in Triton's format.")
    .addHelpText("after", EXAMPLES)
    .addCommand(summaryCommand(terminal))
    .addCommand(exportCommand(terminal));
  return runCommand(program, args, { terminal, faultCode: 1 }, () => EXIT.ok);
}

function summaryCommand(terminal: ToolTerminal): Command {
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

function exportCommand(terminal: ToolTerminal): Command {
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

/** An event of Chrome's Trace Event Format. Times are microseconds. */
export interface ChromeEvent {
  readonly name: string;
  /** `X` a span, `M` a name, `s` and `f` the ends of an arrow, `b` and `e` the ends of a span of its own row. */
  readonly ph: "X" | "M" | "s" | "f" | "b" | "e";
  /** The model. */
  readonly pid: number;
  /** An instance of the model, or a row of its queue. */
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly cat?: string;
  readonly id?: string;
  /** `e`: the arrow ends at the span that encloses it. */
  readonly bp?: "e";
  readonly args?: Readonly<Record<string, string | number>>;
}

/** A trace as Perfetto and chrome://tracing open it. */
export interface ChromeTrace {
  readonly traceEvents: readonly ChromeEvent[];
  readonly displayTimeUnit: "ms";
}

/** Numbers of the first row of a queue, above those of all instances. */
const FIRST_QUEUE_ROW = 10_000;

/** Shortest span, in microseconds: viewers bind arrows to spans, and drop those without a length. */
const SHORTEST = 0.001;

/**
 * Converts a trace to Chrome's Trace Event Format, which https://ui.perfetto.dev opens. A model is a process, and each
 * instance is a thread of it. Requests wait in the rows of the queue. An arrow goes from each request to its batch.
 */
export function chromeTrace(trace: readonly TraceRequest[]): ChromeTrace {
  const origin = trace.reduce(
    (least, { queueStartMs, transport }) => Math.min(least, transport?.receiveStartMs ?? queueStartMs),
    Number.POSITIVE_INFINITY,
  );
  const models = groupBy(trace, ({ modelName, modelVersion }) => `${modelName} ${modelVersion}`);
  const traceEvents = [...models.entries()].flatMap(([name, requests], index) =>
    new ModelEvents(index + 1, name, origin).write(requests),
  );
  return { traceEvents, displayTimeUnit: "ms" };
}

class ModelEvents {
  readonly #events: ChromeEvent[] = [];
  readonly #named = new Set<number>();
  readonly #instances = new Map<string, number>();
  /** Instances of servers that do not record their names. */
  readonly #unnamed = new Lanes();
  readonly #queue = new Lanes();

  constructor(
    private readonly pid: number,
    name: string,
    private readonly originMs: number,
  ) {
    this.#events.push({ name: "process_name", ph: "M", pid, tid: 0, args: { name } });
  }

  write(requests: readonly TraceRequest[]): ChromeEvent[] {
    const rows = this.#batches(requests);
    const byArrival = [...requests].sort((a, b) => a.queueStartMs - b.queueStartMs);
    for (const [index, request] of byArrival.entries()) this.#request(request, index, rows);
    return this.#events;
  }

  /** Writes each batch once, and returns the rows of all. */
  #batches(requests: readonly TraceRequest[]): Map<string, number> {
    const rows = new Map<string, number>();
    const ran = requests.flatMap((request) => (request.batch === undefined ? [] : [request]));
    ran.sort((a, b) => a.batch!.startMs - b.batch!.startMs);
    for (const request of ran) {
      const key = batchKey(request)!;
      if (rows.has(key)) continue;
      const tid = this.#instanceRow(request);
      rows.set(key, tid);
      const { startMs, endMs, inputEndMs, outputStartMs, rows: size, requests: count, cut } = request.batch!;
      this.#span(tid, size === undefined ? "batch" : `batch of ${size}`, startMs, endMs, {
        ...(size === undefined ? {} : { rows: size }),
        ...(count === undefined ? {} : { requests: count }),
        ...(cut === undefined ? {} : { cut }),
      });
      if (inputEndMs === undefined || outputStartMs === undefined) continue;
      this.#span(tid, "inputs", startMs, inputEndMs);
      this.#span(tid, "model", inputEndMs, outputStartMs);
      this.#span(tid, "outputs", outputStartMs, endMs);
    }
    return rows;
  }

  #instanceRow({ batch }: TraceRequest): number {
    const { instance, startMs, endMs } = batch!;
    const name = instance ?? `instance ${this.#unnamed.place(startMs, endMs) + 1}`;
    const tid = this.#instances.get(name) ?? this.#instances.size + 1;
    this.#instances.set(name, tid);
    this.#name(tid, name);
    return tid;
  }

  #request(request: TraceRequest, index: number, rows: ReadonlyMap<string, number>): void {
    const { queueStartMs, endMs, batch, transport, requestId, id } = request;
    const name = requestId ?? `request ${id}`;
    const waitedUntil = Math.max(queueStartMs, batch?.startMs ?? endMs);
    const row = this.#queue.place(queueStartMs, waitedUntil);
    const tid = FIRST_QUEUE_ROW + row;
    this.#name(tid, `queue ${row + 1}`);
    this.#span(tid, name, queueStartMs, waitedUntil, argumentsOf(request));
    const flow = { name: "runs in", cat: "queue", id: `${this.pid}.${index}`, pid: this.pid };
    if (batch !== undefined) {
      const to = rows.get(batchKey(request)!)!;
      this.#events.push(
        { ...flow, ph: "s", tid, ts: this.#at(queueStartMs) },
        { ...flow, ph: "f", bp: "e", tid: to, ts: this.#at(batch.startMs) },
      );
    }
    const whole = { cat: "request", id: flow.id, pid: this.pid, tid: 0 };
    const nested = (part: string, start: number, end: number) =>
      this.#events.push(
        { ...whole, name: part, ph: "b", ts: this.#at(start) },
        { ...whole, name: part, ph: "e", ts: this.#at(Math.max(start, end)) },
      );
    this.#events.push({ ...whole, name, ph: "b", ts: this.#at(transport?.receiveStartMs ?? queueStartMs) });
    if (transport !== undefined) {
      const { protocol, receiveStartMs, receiveEndMs, sendStartMs, sendEndMs } = transport;
      nested(`${protocol} receive`, receiveStartMs, receiveEndMs);
      if (sendStartMs !== undefined && sendEndMs !== undefined)
        nested(`${protocol} send`, sendStartMs, sendEndMs);
    }
    const last = Math.max(endMs, transport?.sendEndMs ?? endMs);
    this.#events.push({ ...whole, name, ph: "e", ts: this.#at(last) });
  }

  #span(tid: number, name: string, startMs: number, endMs: number, args?: ChromeEvent["args"]): void {
    const ts = this.#at(startMs);
    const dur = Math.max(SHORTEST, rounded((endMs - startMs) * 1000));
    const further = args === undefined || Object.keys(args).length === 0 ? {} : { args };
    this.#events.push({ name, ph: "X", pid: this.pid, tid, ts, dur, ...further });
  }

  #name(tid: number, name: string): void {
    if (this.#named.has(tid)) return;
    this.#named.add(tid);
    this.#events.push({ name: "thread_name", ph: "M", pid: this.pid, tid, args: { name } });
  }

  #at(ms: number): number {
    return rounded((ms - this.originMs) * 1000);
  }
}

function argumentsOf({
  id,
  parentId,
  rows,
  priority,
  sequence,
}: TraceRequest): Record<string, string | number> {
  return {
    id,
    ...(parentId === undefined ? {} : { parent: parentId }),
    ...(rows === undefined ? {} : { rows }),
    ...(priority === undefined ? {} : { priority }),
    ...(sequence === undefined ? {} : { sequence: String(sequence.id) }),
  };
}

/** Microseconds, to the nanosecond. */
function rounded(microseconds: number): number {
  return Math.round(microseconds * 1000) / 1000;
}

/** Distributes spans of time over rows, so that the spans of a row do not overlap. */
class Lanes {
  readonly #ends: number[] = [];

  /** Number of the row for a span, from 0. Spans must come in the order of their starts. */
  place(start: number, end: number): number {
    const free = this.#ends.findIndex((one) => one <= start);
    const row = free < 0 ? this.#ends.length : free;
    this.#ends[row] = end;
    return row;
  }
}

/** Milliseconds of many requests. */
export interface TraceDurations {
  readonly mean: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** Figures of one model in a trace. */
export interface ModelTraceSummary {
  readonly model: string;
  readonly version: number;
  readonly requests: number;
  /** Requests that ran in no batch: refused, cancelled, answered by the response cache, or of an ensemble. */
  readonly withoutBatch: number;
  readonly batches: number;
  /** Mean rows of a batch. Undefined for files of servers that do not record rows. */
  readonly meanRows?: number;
  /** Numbers of batches by the reason why they were cut. */
  readonly cuts: Readonly<Record<string, number>>;
  /** Milliseconds from arrival to response. */
  readonly latencyMs: TraceDurations;
  /** Milliseconds in the queue, of requests that ran in a batch. */
  readonly queueMs?: TraceDurations;
  /** Milliseconds of their batches. */
  readonly computeMs?: TraceDurations;
}

/** Figures of a trace. */
export interface TraceSummary {
  /** By name and version. */
  readonly models: readonly ModelTraceSummary[];
  /** Requests with the highest latency, slowest first. */
  readonly slowest: readonly TraceRequest[];
}

/** Summarizes a trace. @param slowest number of the slowest requests to list */
export function summarizeTrace(trace: readonly TraceRequest[], slowest = 5): TraceSummary {
  const groups = groupBy(
    trace,
    ({ modelName, modelVersion }) => `${modelName}\n${String(modelVersion).padStart(20)}`,
  );
  const models = [...groups.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, all]) => modelSummary(all));
  const byLatency = [...trace].sort((a, b) => latencyOf(b) - latencyOf(a));
  return { models, slowest: byLatency.slice(0, slowest) };
}

function latencyOf({ queueStartMs, endMs }: TraceRequest): number {
  return Math.max(0, endMs - queueStartMs);
}

/** A key that the requests of one batch share: the instance and the times of its execution. */
function batchKey({ modelName, modelVersion, batch }: TraceRequest): string | undefined {
  if (batch === undefined) return undefined;
  return JSON.stringify([modelName, modelVersion, batch.instance ?? "", batch.startMs, batch.endMs]);
}

function modelSummary(all: readonly TraceRequest[]): ModelTraceSummary {
  const batches = new Map<string, NonNullable<TraceRequest["batch"]>>();
  const queueMs: number[] = [];
  const computeMs: number[] = [];
  for (const request of all) {
    const { batch, queueStartMs } = request;
    if (batch === undefined) continue;
    batches.set(batchKey(request)!, batch);
    queueMs.push(Math.max(0, batch.startMs - queueStartMs));
    computeMs.push(batch.endMs - batch.startMs);
  }
  const rows = [...batches.values()].flatMap((batch) => batch.rows ?? []);
  const cuts: Record<string, number> = {};
  for (const { cut } of batches.values()) if (cut !== undefined) cuts[cut] = (cuts[cut] ?? 0) + 1;
  return {
    model: all[0]!.modelName,
    version: all[0]!.modelVersion,
    requests: all.length,
    withoutBatch: all.length - queueMs.length,
    batches: batches.size,
    ...(rows.length === 0 ? {} : { meanRows: exactFigures(rows).mean }),
    cuts,
    latencyMs: durations(all.map(latencyOf)),
    ...(queueMs.length === 0 ? {} : { queueMs: durations(queueMs), computeMs: durations(computeMs) }),
  };
}

function durations(values: readonly number[]): TraceDurations {
  const { mean, max, percentile } = exactFigures(values);
  return { mean, p50: percentile(50), p90: percentile(90), p99: percentile(99), max };
}

/** Characters of a line. */
const WIDTH = 80;

/** Characters of the column of names, of each column of figures, and of a request's name beside its timeline. */
const NAMES = 22;
const COLUMN = 11;
const REQUEST = 26;

const QUANTILES = ["mean", "p50", "p90", "p99", "max"] as const;

/** Writes a summary as text. Lines have at most 80 characters. */
export function traceSummaryText({ models, slowest }: TraceSummary): string {
  return `${[...models.flatMap(modelLines), ...slowestLines(slowest)].join("\n")}\n`;
}

function modelLines(model: ModelTraceSummary): string[] {
  const { requests, withoutBatch, batches, meanRows, cuts } = model;
  const rows = meanRows === undefined ? "" : `, ${decimals(meanRows)} rows on average`;
  const reasons = Object.entries(cuts).sort(([, a], [, b]) => b - a);
  return [
    cutOff(`${model.model} version ${model.version}`, WIDTH),
    `  ${counted(requests, "request")} in ${counted(batches, "batch", "batches")}${rows}`,
    ...(withoutBatch === 0 ? [] : [`  ${counted(withoutBatch, "request")} ran in no batch of this model`]),
    ...(reasons.length === 0
      ? []
      : wrapped(`  batches cut by ${reasons.map(([reason, count]) => `${reason} ${count}`).join(", ")}`)),
    `${"  milliseconds".padEnd(NAMES)}${QUANTILES.map((name) => name.padStart(COLUMN)).join("")}`,
    durationsLine("latency", model.latencyMs),
    ...(model.queueMs === undefined ? [] : [durationsLine("in the queue", model.queueMs)]),
    ...(model.computeMs === undefined ? [] : [durationsLine("compute", model.computeMs)]),
    "",
  ];
}

function durationsLine(name: string, durations: TraceDurations): string {
  const figures = QUANTILES.map((quantile) => decimals(durations[quantile]).padStart(COLUMN));
  return `  ${name}`.padEnd(NAMES) + figures.join("");
}

/** The slowest requests, with a bar each on one scale: the time in the queue, the batch, and what came after it. */
function slowestLines(requests: readonly TraceRequest[]): string[] {
  if (requests.length === 0) return [];
  const longest = latencyOf(requests[0]!);
  const room = WIDTH - REQUEST - COLUMN - 2;
  return [
    "Slowest requests, in milliseconds (. queue, # batch, - after it)",
    ...requests.map((request) => {
      const { id, requestId, modelName } = request;
      const name = cutOff(`${modelName} ${requestId ?? `#${id}`}`, REQUEST - 1).padEnd(REQUEST);
      return `${name}${decimals(latencyOf(request)).padStart(COLUMN)}  ${bar(request, room / (longest || 1))}`.trimEnd();
    }),
  ];
}

function bar(request: TraceRequest, charactersPerMs: number): string {
  const { batch, queueStartMs } = request;
  const at = (ms: number) => Math.round(Math.max(0, ms - queueStartMs) * charactersPerMs);
  const end = at(request.endMs);
  if (batch === undefined) return ".".repeat(end);
  const start = Math.min(end, at(batch.startMs));
  const computed = Math.min(end, Math.max(start, at(batch.endMs)));
  return ".".repeat(start) + "#".repeat(computed - start) + "-".repeat(end - computed);
}

function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

function wrapped(text: string): string[] {
  const lines = [""];
  for (const part of text.split(/(?<=, )/)) {
    if (`${lines.at(-1)}${part}`.trimEnd().length > WIDTH) lines.push("    ");
    lines[lines.length - 1] += part;
  }
  return lines.map((line) => line.trimEnd());
}

/** Text of clients in one line without control characters. */
function cutOff(text: string, length: number): string {
  const line = text.replace(/\p{Cc}/gu, "?");
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}
