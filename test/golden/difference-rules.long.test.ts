import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { commandDifferences } from "./differences/command-differences.js";
import { amended, type Difference } from "./differences/difference.js";
import { grpcDifferences } from "./differences/grpc-differences.js";
import { httpDifferences } from "./differences/http-differences.js";
import { lifecycleDifferences } from "./differences/lifecycle-differences.js";
import { loadDifferences } from "./differences/load-differences.js";
import { schedulerDifferences } from "./differences/scheduler-differences.js";
import { trafficDifferences } from "./differences/traffic-differences.js";
import type { CommandCase } from "./support/cli/command-case.js";
import type { GrpcCase } from "./support/grpc/grpc-case.js";
import type { HttpCase } from "./support/http/http-case.js";
import type { Scenario as LifeCycle } from "./support/lifecycle/scenario.js";
import { loadJson, loadLines } from "./support/load-cases.js";
import type { LoadCase } from "./support/loads/load-case.js";
import type { Scenario } from "./support/scheduler/scenario.js";
import { type RecordedModel, readModels } from "./support/served-models.js";

/**
 * Rules for one kind of recording, the number of recordings each applies to, and how many of those it leaves
 * unchanged.
 */
function used<C>(differences: readonly Difference<C, never>[], cases: readonly C[]) {
  return differences.map((difference) => {
    const meant = cases.filter((recorded) => difference.applies(recorded));
    const unchanged = meant.filter((recorded) => isUnchanged(recorded, difference)).length;
    return { rule: difference.rule, untilMended: difference.untilMended, count: meant.length, unchanged };
  });
}

/** True when a rule leaves a recording unchanged, as far as it can be known without the outcome. */
function isUnchanged<C>(recorded: C, difference: Difference<C, never>): boolean {
  try {
    return isDeepStrictEqual(amended(recorded, [difference], [] as never), recorded);
  } catch {
    return false;
  }
}

const httpModels = readModels(loadJson<Record<string, RecordedModel>>("http/models.json"));
const { models } = loadJson<{ models: Record<string, RecordedModel> }>("grpc/models.json");
const calls = loadLines<GrpcCase>("grpc/cases.jsonl");
const loads = ["prototxt", "autocomplete"].flatMap((file) => loadLines<LoadCase>(`config/${file}.jsonl`));
const traffic = ["metrics", "statistics"].flatMap((file) => loadLines<never>(`config/${file}.jsonl`));

const rules = [
  ...used(httpDifferences(httpModels), loadLines<HttpCase>("http/cases.jsonl")),
  ...used(grpcDifferences(readModels(models), calls), calls),
  ...used(schedulerDifferences, loadLines<Scenario>("scheduler/scenarios.jsonl")),
  ...used(loadDifferences, loads),
  ...used(trafficDifferences, traffic),
  ...used(lifecycleDifferences, loadLines<LifeCycle>("config/lifecycle.jsonl")),
  ...used(commandDifferences, loadLines<CommandCase>("config/cli.jsonl")),
];

/** Names of the rules in the first cells of the page's tables. */
const rows = readFileSync(new URL("../../docs/compatibility.md", import.meta.url), "utf8")
  .split("\n")
  .flatMap((line) => /^\| `([\w-]+)` \|/.exec(line)?.[1] ?? []);

describe("the tables in docs/compatibility.md", () => {
  const intended = [...new Set(rules.filter(({ untilMended }) => !untilMended).map(({ rule }) => rule))];

  it("have one row for every rule by which the library differs on purpose", () => {
    expect([...rows].sort()).toEqual(intended.sort());
  });
});

describe("the difference rules", () => {
  it("apply to at least one recording each", () => {
    const idle = new Set(rules.map(({ rule }) => rule));
    for (const { rule, count } of rules) if (count > 0) idle.delete(rule);
    expect([...idle]).toEqual([]);
  });

  it("change the recordings they apply to", () => {
    const idle = new Set(rules.filter(({ count, unchanged }) => count > 0 && unchanged === count));
    expect([...idle].map(({ rule }) => rule)).toEqual([]);
  });
});

describe("the recordings", () => {
  it("are all present, each once", () => {
    const files = ["cli", "lifecycle", "metrics", "statistics", "prototxt", "autocomplete"];
    const all = [
      ...files.map((file) => `config/${file}`),
      "grpc/cases",
      "http/cases",
      "scheduler/scenarios",
    ].flatMap((file) => loadLines<{ readonly id: string }>(`${file}.jsonl`).map(({ id }) => `${file}/${id}`));
    expect(new Set(all).size).toBe(all.length);
    expect(all.length).toBeGreaterThanOrEqual(1950);
  });
});
