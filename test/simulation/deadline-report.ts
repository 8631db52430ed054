import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deadlines } from "@tritonjs/scheduling";
import { DEADLINE_CASES, type DeadlineCase, OTHER_CASES } from "./deadline-cases.js";
import { byLibrary, type DeadlineSetting, largestLoad, type Served, shareInTime } from "./deadline-run.js";
import { clockwork, nexus, symphony, vtc } from "./paper-policies.js";
import { byPolicy } from "./policy-run.js";

/** A policy that is compared. */
export interface Contender {
  readonly name: string;
  readonly served: Served;
}

function levelsOf({ classes: { length } }: DeadlineCase) {
  return { priorityLevels: length, defaultPriorityLevel: length };
}

/** Triton's priority levels. */
const levels = (one: DeadlineCase): DeadlineSetting => ({ levels: true, batcher: levelsOf(one) });

/** The three settings that there were before `deadlines`: a target latency, levels, and deadlines of requests. */
const threeSettings = (one: DeadlineCase): DeadlineSetting => ({
  levels: true,
  deadlines: true,
  batcher: deadlines({ targetLatencyMs: one.classes[0]!.limitMs, ...levelsOf(one) }),
});

export const DEADLINES: Contender = {
  name: "`deadlines`",
  served: byLibrary(() => ({ deadlines: true, batcher: deadlines() })),
};

export const CONTENDERS: readonly Contender[] = [
  { name: "Triton's levels", served: byLibrary(levels) },
  { name: "three settings", served: byLibrary(threeSettings) },
  DEADLINES,
  { name: "Clockwork", served: byPolicy((profile) => clockwork(profile)) },
  { name: "Nexus", served: byPolicy((profile) => nexus(profile, profile.maxBatchSize)) },
  { name: "Symphony", served: byPolicy((profile) => symphony(profile)) },
  { name: "VTC", served: byPolicy((profile, one) => vtc(profile, one.classes.length)) },
];

const OVERLOAD = 1.2;

/** What a contender reaches in a case. */
export interface Reached {
  /** Largest load at which 99% of each class are in time. */
  readonly load: number;
  /** Share of all requests in time at 1.2 times the full-batch capacity. */
  readonly inTime: number;
}

/** The mean over the seeds. */
export async function reached(
  one: DeadlineCase,
  { served }: Contender,
  seeds: readonly number[],
  durationMs: number,
): Promise<Reached> {
  let [load, inTime] = [0, 0];
  for (const seed of seeds) {
    load += (await largestLoad(one, served, { seed, durationMs })) / seeds.length;
    inTime += shareInTime(await served(one, { seed, durationMs, load: OVERLOAD })) / seeds.length;
  }
  return { load, inTime };
}

const SEEDS = [1, 2];
const DURATION_MS = 20_000;

/** Runs all cases, and puts the table into docs/deadlines.md. Resolves with the table. */
export async function writeDeadlineReport(root: string, progress: (text: string) => void): Promise<string> {
  const path = join(root, "docs", "deadlines.md");
  const table = await policyTable(progress);
  const document = readFileSync(path, "utf8").replace(
    /(<!-- simulation -->\n).*(\n<!-- \/simulation -->)/s,
    (_, begin, end) => begin + table + end,
  );
  writeFileSync(path, document);
  return table;
}

async function policyTable(progress: (text: string) => void): Promise<string> {
  const lines = [
    `| case | ${CONTENDERS.map(({ name }) => name).join(" | ")} |`,
    `| --- |${CONTENDERS.map(() => " --: |").join("")}`,
  ];
  for (const one of [...DEADLINE_CASES, ...OTHER_CASES]) {
    progress(one.name);
    const cells: string[] = [];
    for (const contender of CONTENDERS) {
      const { load, inTime } = await reached(one, contender, SEEDS, DURATION_MS);
      cells.push(`${load.toFixed(2)}; ${Math.round(100 * inTime)}%`);
    }
    lines.push(`| ${one.name} | ${cells.join(" | ")} |`);
  }
  return lines.join("\n");
}
