import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BatcherOptions } from "../../packages/core/src/config/model-options.js";
import { getOrAdd } from "../../packages/core/src/system/collections.js";
import { meanWithShortestRemaining } from "./shortest-remaining.js";
import { generateTexts, type KnownLength, type SimulatedDecoder, type TextRun, textsOf } from "./text-run.js";

/** Decoders by the number of texts that run together. */
export const DECODERS: readonly SimulatedDecoder[] = [
  { maxRunning: 1, stepMs: 10, textMs: 1, promptTokenMs: 0.05 },
  { maxRunning: 2, stepMs: 10, textMs: 10, promptTokenMs: 0.05 },
  { maxRunning: 4, stepMs: 10, textMs: 2, promptTokenMs: 0.05 },
  { maxRunning: 4, stepMs: 2, textMs: 8, promptTokenMs: 0.05 },
  { maxRunning: 8, stepMs: 1, textMs: 4, promptTokenMs: 0.05 },
  { maxRunning: 8, stepMs: 20, textMs: 0.3, promptTokenMs: 0.02 },
];

/** Times of a run, in milliseconds. */
interface TextTimes {
  readonly meanLastToken: number;
  readonly p99Wait: number;
  readonly longestWait: number;
}

const measured = new Map<string, Promise<TextTimes>>();

/** The times of a run, which is simulated once: equal runs have equal times. */
function timesOf(...run: Parameters<typeof measure>): Promise<TextTimes> {
  return getOrAdd(measured, JSON.stringify(run), () => measure(...run));
}

async function measure(
  decoder: SimulatedDecoder,
  batcher: BatcherOptions,
  run: TextRun,
  known?: KnownLength,
): Promise<TextTimes> {
  const outcomes = await generateTexts(decoder, batcher, run, known);
  const waits = outcomes.map(({ waitMs }) => waitMs).sort((a, b) => a - b);
  const sum = outcomes.reduce((total, { lastTokenMs }) => total + lastTokenMs, 0);
  return {
    meanLastToken: sum / outcomes.length,
    p99Wait: waits[Math.floor(0.99 * (waits.length - 1))]!,
    longestWait: waits.at(-1)!,
  };
}

interface ComparedTexts {
  /** Mean time to the last token in the order of arrival, in milliseconds. */
  readonly arrivalMs: number;
  /** Mean times as shares of that: of `shortestFirst` by what is known of lengths, and of the shortest remaining text. */
  readonly means: Readonly<Partial<Record<KnownLength, number>>>;
  readonly least: number;
  /** The longest wait, as a multiple of the wait of 99% of the texts in the order of arrival in the same run. */
  readonly longestWait: number;
}

/** What `shortestFirst` makes of the times in the order of arrival, over all runs together. */
export async function comparedWithArrival(
  decoder: SimulatedDecoder,
  knowns: readonly KnownLength[],
  runs: readonly TextRun[],
): Promise<ComparedTexts> {
  let [arrivalMs, leastMs, longestWait] = [0, 0, 0];
  const means: Partial<Record<KnownLength, number>> = {};
  for (const run of runs) {
    const before = await timesOf(decoder, {}, run);
    arrivalMs += before.meanLastToken / runs.length;
    leastMs += meanWithShortestRemaining(decoder, await textsOf(decoder, run, "exact")) / runs.length;
    for (const known of knowns) {
      const after = await timesOf(decoder, { shortestFirst: true }, run, known);
      means[known] = (means[known] ?? 0) + after.meanLastToken / runs.length;
      longestWait = Math.max(longestWait, after.longestWait / before.p99Wait);
    }
  }
  for (const known of knowns) means[known]! /= arrivalMs;
  return { arrivalMs, means, least: leastMs / arrivalMs, longestWait };
}

const RUNS = [1, 2, 3, 4, 5, 6].map((seed) => ({ load: 0.9, count: 3000, seed }));
const KNOWN: readonly KnownLength[] = ["exact", "limit", "caller"];

/** Runs all decoders, and puts the table into docs/deadlines.md. Resolves with the table. */
export async function writeTextReport(root: string, progress: (text: string) => void): Promise<string> {
  const lines = [
    "| texts at a time; step of n texts | in the order of arrival | interrupting | exact length | `max_tokens` | caller | longest wait |",
    "| --- | --: | --: | --: | --: | --: | --: |",
  ];
  for (const decoder of DECODERS) {
    const { maxRunning, stepMs, textMs } = decoder;
    const name = `${maxRunning}; ${stepMs} + ${textMs} n ms`;
    progress(name);
    const { arrivalMs, means, least, longestWait } = await comparedWithArrival(decoder, KNOWN, RUNS);
    const cells = [least, ...KNOWN.map((known) => means[known]!)].map((share) => share.toFixed(2));
    lines.push(
      `| ${name} | ${(arrivalMs / 1000).toFixed(1)} s | ${cells.join(" | ")} | ${longestWait.toFixed(1)} |`,
    );
  }
  const text = lines.join("\n");
  const path = join(root, "docs", "deadlines.md");
  const document = readFileSync(path, "utf8");
  const marked = /(<!-- texts -->\n).*(<!-- \/texts -->)/s;
  writeFileSync(
    path,
    document.replace(marked, (_, begin, end) => `${begin}${text}\n${end}`),
  );
  return text;
}
