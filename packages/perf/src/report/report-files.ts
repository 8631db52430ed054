import { type FileHandle, open } from "node:fs/promises";
import { Tensor } from "@tritonjs/protocol";
import type { DataSet } from "../data/data-set.js";
import { countsConcurrency, type LoadLevel, levelValue } from "../load/load-level.js";
import type { LoadWindow } from "../load/request-records.js";
import type { Distribution } from "../measure/distribution.js";
import type { LevelResult } from "../measure/level-result.js";
import { TOKEN_METRIC_NAMES, TOKEN_METRICS, type TokenFigures } from "../measure/request-figures.js";
import { overheadMs, type ServerFigures, stageMs, usesCache } from "../measure/server-watch.js";
import { outputsJson } from "../target/carrier.js";
import { remarkOf, reportedPercentiles } from "./console-report.js";
import { csvTable, microseconds, type RunDescription, sixDigits } from "./write-report.js";

interface CsvFile {
  readonly model?: { readonly name: string; readonly version: string };
  readonly text: string;
}

const GPU_COLUMNS = [
  ["Avg GPU Utilization", "nv_gpu_utilization"],
  ["Avg GPU Power Usage", "nv_gpu_power_usage"],
  ["Max GPU Memory Usage", "nv_gpu_memory_used_bytes"],
  ["Total GPU Memory", "nv_gpu_memory_total_bytes"],
] as const;

/**
 * The measured levels as CSV with perf_analyzer's columns, in the order of rising throughput. Times are whole
 * microseconds. Composing models of an ensemble have files of their own.
 */
export function csvFiles(results: readonly LevelResult[], run: RunDescription, verbose: boolean): CsvFile[] {
  const rows = results
    .filter(({ figures }) => figures.requestCount > 0)
    .toSorted((a, b) => a.figures.throughput - b.figures.throughput);
  const files: CsvFile[] = [{ text: csvText(rows, run, verbose) }];
  const composing = new Map<string, ServerFigures>();
  for (const { server } of rows)
    for (const model of server?.composing ?? []) composing.set(keyOf(model), model);
  for (const [key, { name, version }] of composing) {
    files.push({ model: { name, version }, text: composingText(rows, run, key) });
  }
  return files;
}

type Column = readonly [title: string, cellOf: (row: LevelResult) => string | number];

function csvText(rows: readonly LevelResult[], run: RunDescription, verbose: boolean): string {
  const us = microseconds;
  const hasServer = rows.some(({ server }) => server !== undefined);
  const hasCache = rows.some(({ server }) => server !== undefined && usesCache(server));
  // A level whose statistics could not be read has no values here: zeros would look like measured times.
  const ofServer = (cellOf: (server: ServerFigures, row: LevelResult) => number) => (row: LevelResult) =>
    row.server === undefined ? "" : cellOf(row.server, row);
  const serverColumns: Column[] = [
    ["Network+Server Send/Recv", ofServer((server, row) => us(networkMs(row, server)))],
    ...stagesOf(hasCache).map(
      ([title, stage]): Column => [title, ofServer((server) => us(stageMs(server, stage)))],
    ),
  ];
  const gauges = GPU_COLUMNS.filter(([, gauge]) =>
    rows.some(({ metrics }) => metrics?.gauges[gauge] !== undefined),
  ).map(
    ([title, gauge]): Column => [
      title,
      ({ metrics }) =>
        Object.entries(metrics?.gauges[gauge] ?? {})
          .map(([uuid, value]) => `${uuid}:${sixDigits(value)};`)
          .join(""),
    ],
  );
  const average: Column = ["Avg latency", ({ figures }) => us(figures.latency.mean)];
  const responses: Column = ["Response Throughput", ({ figures }) => sixDigits(figures.responseThroughput)];
  const columns: Column[] = [
    [levelHeader(run), ({ level }) => sixDigits(levelValue(level))],
    ["Inferences/Second", ({ figures }) => sixDigits(figures.throughput)],
    ...(run.decoupled ? [responses] : []),
    ["Client Send", ({ figures }) => us(figures.meanSendMs)],
    ...(hasServer ? serverColumns : []),
    ["Client Recv", ({ figures }) => us(figures.meanReceiveMs)],
    ...reportedPercentiles(run).map(
      (p): Column => [`p${p} latency`, ({ figures }) => us(figures.latency.percentile(p))],
    ),
  ];
  const further: Column[] = [
    ...(run.percentile === undefined ? [average] : []),
    ["request/response", ({ figures }) => us(figures.meanSendMs + figures.meanReceiveMs)],
    ["response wait", ({ figures }) => us(figures.meanWaitMs)],
    ...gauges,
    ["Failed Requests", ({ figures }) => figures.failureCount],
    ["Remark", remarkOf],
  ];
  const all = verbose ? [...columns, ...further] : columns;
  return csvTable([all.map(([title]) => title), ...rows.map((row) => all.map(([, cellOf]) => cellOf(row)))]);
}

const SERVER_COLUMNS = [
  ["Server Queue", "queue"],
  ["Server Compute Input", "computeInput"],
  ["Server Compute Infer", "computeInfer"],
  ["Server Compute Output", "computeOutput"],
  ["Server Cache Hit", "cacheHit"],
  ["Server Cache Miss", "cacheMiss"],
] as const;

const stagesOf = (hasCache: boolean) => SERVER_COLUMNS.slice(0, hasCache ? 6 : 4);

/** Time of the requests outside the client and the server's stages. */
function networkMs({ figures }: LevelResult, server: ServerFigures): number {
  const inServer = stagesOf(true).reduce((sum, [, stage]) => sum + stageMs(server, stage), 0);
  return Math.max(0, figures.fromSend.mean - figures.meanSendMs - figures.meanReceiveMs - inServer);
}

function composingText(rows: readonly LevelResult[], run: RunDescription, key: string): string {
  const found = rows.flatMap((row) => {
    const model = row.server?.composing.find((one) => keyOf(one) === key);
    return model === undefined ? [] : [{ row, model }];
  });
  const stages = stagesOf(found.some(({ model }) => usesCache(model)));
  const lines = found.map(({ row, model }) => {
    const requests = row.server?.stages.success.count ?? 0;
    const ratio = requests === 0 ? 0 : model.stages.success.count / requests;
    return [
      sixDigits(levelValue(row.level)),
      sixDigits(row.figures.requestThroughput * ratio * run.batchSize),
      ...stages.map(([, stage]) => microseconds(stageMs(model, stage))),
    ];
  });
  return csvTable([[levelHeader(run), "Inferences/Second", ...stages.map(([title]) => title)], ...lines]);
}

/** Heading of the levels, also where none has a row. */
const levelHeader = ({ load }: RunDescription) => (load === "concurrency" ? "Concurrency" : "Request Rate");

const keyOf = ({ name, version }: { readonly name: string; readonly version: string }) =>
  `${name}_v${version}`;

const PERCENTILES = [1, 5, 10, 25, 50, 75, 90, 95, 99] as const;

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

/**
 * All figures as JSON, with AIPerf's keys for those that it has. A run of one level has its figures at the top too, so
 * that programs which read `profile_export_aiperf.json` find them.
 */
export function figuresJson(results: readonly LevelResult[], run: RunDescription): string {
  const levels = results.map((result) => levelJson(result, run));
  const [only] = levels;
  const document: Json = {
    ...(levels.length === 1 && only !== undefined ? only : {}),
    input_config: { ...run } as unknown as Json,
    was_cancelled: results.some(({ interrupted }) => interrupted),
    levels,
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

function levelJson(result: LevelResult, run: RunDescription): { readonly [key: string]: Json | undefined } {
  const { figures, level, phase, instability, fault, server } = result;
  return {
    mode: level.mode,
    value: levelValue(level),
    phase,
    stable: instability === undefined && fault === undefined && !result.interrupted,
    instability,
    over_latency_limit: result.overLimit,
    error: fault?.text,
    start_time: timeText(figures.start),
    end_time: timeText(figures.end),
    request_count: { unit: "requests", avg: figures.requestCount },
    error_request_count: { unit: "requests", avg: figures.failureCount },
    error_summary: [...figures.failures].map(([text, count]) => ({
      error_details: { message: text },
      count,
    })),
    request_throughput: { unit: "requests/sec", avg: figures.requestThroughput },
    inference_throughput: { unit: "infer/sec", avg: figures.throughput },
    ...(run.decoupled && { response_throughput: { unit: "responses/sec", avg: figures.responseThroughput } }),
    scheduled_latency: statistics(figures.latency, "ms"),
    request_latency: statistics(figures.fromSend, "ms"),
    send_time: { unit: "ms", avg: figures.meanSendMs },
    response_wait: { unit: "ms", avg: figures.meanWaitMs },
    receive_time: { unit: "ms", avg: figures.meanReceiveMs },
    generator: {
      overhead: figures.overhead,
      event_loop_utilization: figures.eventLoopUtilization,
      cpu_utilization: figures.cpuUtilization,
      cpu_cores: figures.cpuCores,
      delayed: figures.delayedShare,
      cpu_ms_per_request: figures.cpuMsPerRequest,
    },
    ...(figures.tokens !== undefined && tokensJson(figures.tokens)),
    ...(server !== undefined && { server: serverJson(server) }),
    ...(result.metrics !== undefined && { metrics: result.metrics.gauges as unknown as Json }),
    timeline: result.timeline.map(({ start, throughput, meanMs, p99Ms, failureCount }) => ({
      start_time: new Date(start).toISOString(),
      throughput,
      avg_latency_ms: finite(meanMs),
      p99_latency_ms: finite(p99Ms),
      errors: failureCount,
    })),
  };
}

function tokensJson(tokens: TokenFigures): { readonly [key: string]: Json | undefined } {
  const entries = TOKEN_METRIC_NAMES.filter((name) => tokens.distributions[name].count > 0).map((name) => [
    name,
    statistics(tokens.distributions[name], TOKEN_METRICS[name].unit),
  ]);
  return {
    ...Object.fromEntries(entries),
    output_token_throughput: { unit: "tokens/sec", avg: tokens.outputTokenThroughput },
    request_throughput: { unit: "requests/sec", avg: tokens.requestThroughput },
    benchmark_duration: { unit: "sec", avg: tokens.benchmarkDuration },
    ...(tokens.options.goals.length > 0 && { goodput: { unit: "requests/sec", avg: tokens.goodput } }),
  };
}

function serverJson(server: ServerFigures): Json {
  return {
    model: server.name,
    version: server.version,
    inference_count: server.inferenceCount,
    execution_count: server.executionCount,
    success_count: server.stages.success.count,
    fail_count: server.stages.fail.count,
    cache_hit_count: server.stages.cacheHit.count,
    cache_miss_count: server.stages.cacheMiss.count,
    request_ms: stageMs(server, "success"),
    overhead_ms: overheadMs(server),
    queue_ms: stageMs(server, "queue"),
    compute_input_ms: stageMs(server, "computeInput"),
    compute_infer_ms: stageMs(server, "computeInfer"),
    compute_output_ms: stageMs(server, "computeOutput"),
    batch_sizes: server.batches.map(({ batchSize, count }) => ({ batch_size: batchSize, count })),
    batch_cuts: server.cuts,
    composing_models: server.composing.map(serverJson),
  };
}

function statistics(distribution: Distribution, unit: string): Json {
  if (distribution.count === 0) return { unit };
  return {
    unit,
    avg: distribution.mean,
    min: distribution.min,
    max: distribution.max,
    ...Object.fromEntries(PERCENTILES.map((p) => [`p${p}`, distribution.percentile(p)])),
    std: finite(distribution.deviation),
  };
}

/** Null for a level without a window. */
const timeText = (ms: number): string | null => (Number.isFinite(ms) ? new Date(ms).toISOString() : null);

const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** Properties at the end of a profile. */
interface ProfileTrailer {
  readonly version: string;
  readonly service_kind: string;
  readonly endpoint: string;
}

/** JSON text of the inputs of a payload, an object by their names; undefined if they are not recorded. */
type PayloadInputs = (payload: number) => string | undefined;

/** Length of text that is written at once. */
const PIECE_LENGTH = 1 << 16;

/**
 * Writes single requests to a JSON file while they are measured, in the schema of perf_analyzer's profile export. It
 * holds no more than one window in memory. After a fault of the file, such as a full disk, nothing more is written.
 */
export class ProfileExport {
  readonly #inputTexts = new Map<number, string>();
  /** Texts are written in the order in which they came. */
  #written: Promise<void> = Promise.resolve();
  #failure: unknown;
  #level: LoadLevel | undefined;
  #boundaries: string[] = [];
  #isFirstExperiment = true;
  #isFirstRequest = true;

  private constructor(
    readonly path: string,
    private file: FileHandle | undefined,
    private readonly inputsOf: PayloadInputs,
  ) {
    this.#write('{"experiments":[');
  }

  static async create(path: string, inputsOf: PayloadInputs = () => undefined): Promise<ProfileExport> {
    return new ProfileExport(path, await open(path, "w"), inputsOf);
  }

  /** Adds the requests of a window of the level. Failed requests have no responses. */
  add(level: LoadLevel, window: LoadWindow): void {
    if (level !== this.#level) this.#begin(level, window.start);
    this.#boundaries.push(nanoseconds(window.end));
    let text = "";
    for (let i = 0; i < window.records.count; i++) {
      text += (this.#isFirstRequest ? "" : ",") + this.#requestText(window, i);
      this.#isFirstRequest = false;
      if (text.length > PIECE_LENGTH) {
        this.#write(text);
        text = "";
      }
    }
    this.#write(text);
  }

  /** Resolves when all that was added is written, so that memory stays bounded. */
  async flush(): Promise<void> {
    await this.#written;
  }

  /** Completes the file and closes it. */
  async finish({ version, service_kind, endpoint }: ProfileTrailer): Promise<void> {
    this.#end();
    const members = Object.entries({ version, service_kind, endpoint });
    this.#write(`],${members.map(([key, value]) => `"${key}":${JSON.stringify(value)}`).join(",")}}\n`);
    await this.#written;
    const file = this.file;
    this.file = undefined;
    await file?.close();
    if (this.#failure !== undefined) throw this.#failure;
  }

  #begin(level: LoadLevel, start: number): void {
    this.#end();
    this.#level = level;
    this.#boundaries = [nanoseconds(start)];
    this.#isFirstRequest = true;
    const experiment = {
      mode: countsConcurrency(level) ? "concurrency" : "request_rate",
      value: levelValue(level),
    };
    const comma = this.#isFirstExperiment ? "" : ",";
    this.#isFirstExperiment = false;
    this.#write(`${comma}{"experiment":${JSON.stringify(experiment)},"requests":[`);
  }

  #end(): void {
    if (this.#level === undefined) return;
    this.#write(`],"window_boundaries":[${this.#boundaries.join(",")}]}`);
    this.#level = undefined;
  }

  #requestText({ records }: LoadWindow, i: number): string {
    const { kept } = records;
    const sequence = records.sequence[i]!;
    const from = kept?.offsets[i] ?? 0;
    const to = kept?.offsets[i + 1] ?? 0;
    const times: number[] = [];
    if (kept !== undefined) for (let j = from; j < to; j++) times.push(kept.times[j]!);
    else if (records.failure[i] === 0) times.push(records.end[i]!);
    const outputs = kept?.outputs?.slice(from, to);
    const inputs = this.#inputText(records.payload[i]!);
    // A request that never reached a connection has no time of sending.
    const sent = Number.isNaN(records.sent[i]!) ? records.scheduled[i]! : records.sent[i]!;
    return (
      `{"timestamp":${nanoseconds(sent)}` +
      (sequence === 0 ? "" : `,"sequence_id":${sequence}`) +
      (inputs === "" ? "" : `,"request_inputs":${inputs}`) +
      `,"response_timestamps":[${times.map(nanoseconds).join(",")}]` +
      (outputs === undefined ? "" : `,"response_outputs":[${outputs.join(",")}]`) +
      "}"
    );
  }

  /** Inputs as JSON text. Few payloads are used again and again. */
  #inputText(payload: number): string {
    const known = this.#inputTexts.get(payload);
    if (known !== undefined) return known;
    const text = this.inputsOf(payload) ?? "";
    this.#inputTexts.set(payload, text);
    return text;
  }

  #write(text: string): void {
    if (text === "") return;
    this.#written = this.#written.then(async () => {
      if (this.#failure !== undefined) return;
      try {
        await this.file?.appendFile(text);
      } catch (error) {
        this.#failure = error;
      }
    });
  }
}

/** Nanoseconds since the epoch, from milliseconds with fractions. A double has room for microseconds only. */
function nanoseconds(ms: number): string {
  const microseconds = Math.round(ms * 1000);
  return microseconds > 0 ? `${microseconds}000` : "0";
}

export function payloadInputs(data: DataSet): PayloadInputs {
  if (data.kind === "openai")
    return (payload) => `{"payload":${JSON.stringify(data.payloads[payload] ?? "")}}`;
  return (payload) => {
    const inputs = data.payloads[payload]?.inputs;
    // Each request replaces fresh values with others, which nobody records.
    if (inputs === undefined || inputs.some(({ fresh }) => fresh !== undefined)) return undefined;
    return outputsJson(
      new Map(
        inputs.map(
          ({ name, datatype, shape, bytes }) => [name, Tensor.fromBytes(datatype, shape, bytes)] as const,
        ),
      ),
    );
  };
}
