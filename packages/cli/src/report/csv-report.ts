import { type LevelResult, levelValue } from "../measure/level-result.js";
import { type ServerFigures, stageMs, usesCache } from "../measure/server-watch.js";
import { remarkOf, reportedPercentiles } from "./console-report.js";
import { microseconds, type RunDescription, sixDigits } from "./write-report.js";

/** One CSV file: that of the model, or of a model of its steps. */
export interface CsvFile {
  /** Name and version of a composing model; undefined for the measured model. */
  readonly model?: { readonly name: string; readonly version: string };
  readonly text: string;
}

/** A value that a spreadsheet could take for a formula, or that has a comma, is quoted. */
function cell(value: string | number): string {
  const text = String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
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

function csvText(rows: readonly LevelResult[], run: RunDescription, verbose: boolean): string {
  const hasServer = rows.some(({ server }) => server !== undefined);
  const hasCache = rows.some(({ server }) => server !== undefined && usesCache(server));
  const gpus = GPU_COLUMNS.filter(([, gauge]) =>
    rows.some(({ metrics }) => metrics?.gauges[gauge] !== undefined),
  );
  const percentiles = reportedPercentiles(run);
  const header = [
    levelHeader(run),
    "Inferences/Second",
    ...(run.decoupled ? ["Response Throughput"] : []),
    "Client Send",
    ...(hasServer
      ? [
          "Network+Server Send/Recv",
          "Server Queue",
          "Server Compute Input",
          "Server Compute Infer",
          "Server Compute Output",
          ...(hasCache ? ["Server Cache Hit", "Server Cache Miss"] : []),
        ]
      : []),
    "Client Recv",
    ...percentiles.map((percentile) => `p${percentile} latency`),
    ...(verbose
      ? [
          ...(run.percentile === undefined ? ["Avg latency"] : []),
          "request/response",
          "response wait",
          ...gpus.map(([title]) => title),
          "Failed Requests",
          "Remark",
        ]
      : []),
  ];
  const lines = rows.map((row) => {
    const { figures, server, metrics } = row;
    const us = microseconds;
    // A level whose statistics could not be read has no values here: zeros would look like measured times.
    const serverSide =
      server === undefined
        ? Array(hasCache ? 7 : 5).fill("")
        : [us(networkMs(row, server)), ...serverCells(server, hasCache)];
    const gauges = gpus.map(([, gauge]) =>
      Object.entries(metrics?.gauges[gauge] ?? {})
        .map(([uuid, value]) => `${uuid}:${sixDigits(value)};`)
        .join(""),
    );
    return [
      sixDigits(levelValue(row.level)),
      sixDigits(figures.throughput),
      ...(run.decoupled ? [sixDigits(figures.responseThroughput)] : []),
      us(figures.meanSendMs),
      ...(hasServer ? serverSide : []),
      us(figures.meanReceiveMs),
      ...percentiles.map((percentile) => us(figures.latency.percentile(percentile))),
      ...(verbose
        ? [
            ...(run.percentile === undefined ? [us(figures.latency.mean)] : []),
            us(figures.meanSendMs + figures.meanReceiveMs),
            us(figures.meanWaitMs),
            ...gauges,
            figures.failureCount,
            remarkOf(row),
          ]
        : []),
    ];
  });
  return table([header, ...lines]);
}

/** Time of the requests outside the client and the server's stages. */
function networkMs({ figures }: LevelResult, server: ServerFigures): number {
  const inServer = sum(serverMs(server, true));
  return Math.max(0, figures.fromSend.mean - figures.meanSendMs - figures.meanReceiveMs - inServer);
}

function serverMs(server: ServerFigures, hasCache: boolean): number[] {
  const names = ["queue", "computeInput", "computeInfer", "computeOutput"] as const;
  const stages = names.map((name) => stageMs(server, name));
  return hasCache ? [...stages, stageMs(server, "cacheHit"), stageMs(server, "cacheMiss")] : stages;
}

function serverCells(server: ServerFigures, hasCache: boolean): number[] {
  return serverMs(server, hasCache).map(microseconds);
}

/** The rows of a composing model: its share of the throughput, and its stages. */
function composingText(rows: readonly LevelResult[], run: RunDescription, key: string): string {
  const found = rows.flatMap((row) => {
    const model = row.server?.composing.find((one) => keyOf(one) === key);
    return model === undefined ? [] : [{ row, model }];
  });
  const hasCache = found.some(({ model }) => usesCache(model));
  const header = [
    levelHeader(run),
    "Inferences/Second",
    "Server Queue",
    "Server Compute Input",
    "Server Compute Infer",
    "Server Compute Output",
    ...(hasCache ? ["Server Cache Hit", "Server Cache Miss"] : []),
  ];
  const lines = found.map(({ row, model }) => {
    const requests = row.server?.stages.success.count ?? 0;
    const ratio = requests === 0 ? 0 : model.stages.success.count / requests;
    return [
      sixDigits(levelValue(row.level)),
      sixDigits(row.figures.requestThroughput * ratio * run.batchSize),
      ...serverCells(model, hasCache),
    ];
  });
  return table([header, ...lines]);
}

/** Heading of the levels, also where none has a row. */
const levelHeader = ({ load }: RunDescription) => (load === "concurrency" ? "Concurrency" : "Request Rate");

function table(rows: readonly (readonly (string | number)[])[]): string {
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

const keyOf = ({ name, version }: { readonly name: string; readonly version: string }) =>
  `${name}_v${version}`;
