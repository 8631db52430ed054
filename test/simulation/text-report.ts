import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BatcherOptions } from "../../packages/core/src/config/model-options.js";
import { generateTexts, type KnownLength, type SimulatedDecoder, type TextRun } from "./text-run.js";

/** Decoders by the number of texts that run together. */
export const DECODERS: readonly SimulatedDecoder[] = [
  { maxRunning: 1, stepMs: 10, textMs: 1, promptTokenMs: 0.05 },
  { maxRunning: 2, stepMs: 10, textMs: 10, promptTokenMs: 0.05 },
  { maxRunning: 4, stepMs: 10, textMs: 2, promptTokenMs: 0.05 },
  { maxRunning: 8, stepMs: 20, textMs: 0.3, promptTokenMs: 0.02 },
];

/** Times of a run, in milliseconds. */
interface TextTimes {
  readonly meanLastToken: number;
  readonly p99Wait: number;
  readonly longestWait: number;
}

export async function timesOf(
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

/** Means over the seeds of what `shortestFirst` makes of the times in the order of arrival. */
export async function comparedWithArrival(
  decoder: SimulatedDecoder,
  known: KnownLength,
  runs: readonly TextRun[],
): Promise<{ readonly arrivalMs: number; readonly mean: number; readonly longestWait: number }> {
  let [arrivalMs, mean, longestWait] = [0, 0, 0];
  for (const run of runs) {
    const before = await timesOf(decoder, {}, run, known);
    const after = await timesOf(decoder, { shortestFirst: true }, run, known);
    arrivalMs += before.meanLastToken / runs.length;
    mean += after.meanLastToken / before.meanLastToken / runs.length;
    longestWait = Math.max(longestWait, after.longestWait / before.p99Wait);
  }
  return { arrivalMs, mean, longestWait };
}

const RUNS = [1, 2].map((seed) => ({ load: 0.9, count: 1200, seed }));

/** Runs all decoders, and puts the table into docs/deadlines.md. Resolves with the table. */
export async function writeTextReport(root: string, progress: (text: string) => void): Promise<string> {
  const lines = [
    "| texts at a time; step of n texts | in the order of arrival | exact length | `max_tokens` | caller | longest wait |",
    "| --- | --: | --: | --: | --: | --: |",
  ];
  for (const decoder of DECODERS) {
    const { maxRunning, stepMs, textMs } = decoder;
    const name = `${maxRunning}; ${stepMs} + ${textMs} n ms`;
    progress(name);
    const exact = await comparedWithArrival(decoder, "exact", RUNS);
    const limit = await comparedWithArrival(decoder, "limit", RUNS);
    const caller = await comparedWithArrival(decoder, "caller", RUNS);
    const cells = [exact, limit, caller].map(({ mean }) => mean.toFixed(2));
    const longest = Math.max(exact.longestWait, limit.longestWait, caller.longestWait);
    lines.push(
      `| ${name} | ${(exact.arrivalMs / 1000).toFixed(1)} s | ${cells.join(" | ")} | ${longest.toFixed(1)} |`,
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
