import type { ReplayResult } from "./replay.js";
import type { ReplayFigures } from "./replay-figures.js";

/** Characters of the column of names, and of each column of figures. */
const NAMES = 22;
const COLUMN = 14;

/** Columns of figures beside each other: 80 characters in all. */
const MOST_COLUMNS = 4;

type Row = readonly [name: string, value: (figures: ReplayFigures) => string];

const ROWS: readonly Row[] = [
  ["Requests answered", ({ answered }) => String(answered)],
  ["Requests failed", ({ failures }) => String(sum(Object.values(failures)))],
  ["Requests a second", ({ throughput }) => decimals(throughput)],
  ["Latency mean, ms", ({ latencyMs }) => decimals(latencyMs.mean)],
  ["Latency p50, ms", ({ latencyMs }) => decimals(latencyMs.p50)],
  ["Latency p90, ms", ({ latencyMs }) => decimals(latencyMs.p90)],
  ["Latency p95, ms", ({ latencyMs }) => decimals(latencyMs.p95)],
  ["Latency p99, ms", ({ latencyMs }) => decimals(latencyMs.p99)],
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
    lines.push(
      "",
      line(
        "",
        shown.map(({ name }) => fit(name)),
      ),
    );
    for (const [name, value] of rows)
      lines.push(
        line(
          name,
          shown.map(({ figures }) => value(figures)),
        ),
      );
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

/** The end of a name, which tells paths apart better than their beginning. */
function fit(name: string): string {
  return name.length < COLUMN ? name : `…${name.slice(2 - COLUMN)}`;
}

function decimals(value: number): string {
  if (Number.isNaN(value)) return "-";
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
