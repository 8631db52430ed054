import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { hasPython, withoutPython } from "../support/python.js";
import { commandDifferences } from "./differences/command-differences.js";
import type { Difference } from "./differences/difference.js";
import { lifecycleDifferences } from "./differences/lifecycle-differences.js";
import { loadDifferences } from "./differences/load-differences.js";
import { trafficDifferences } from "./differences/traffic-differences.js";
import type { CommandCase } from "./support/cli/command-case.js";
import { playCommand } from "./support/cli/play-command.js";
import { playShutdown } from "./support/cli/play-shutdown.js";
import { compareValues } from "./support/compare-values.js";
import { toJsonValue } from "./support/json-value.js";
import { playScenario } from "./support/lifecycle/play-scenario.js";
import type { Scenario } from "./support/lifecycle/scenario.js";
import { loadLines, loadText } from "./support/load-cases.js";
import { compareLoad } from "./support/loads/compare-load.js";
import { isPython, type LoadCase, type PlayedLoad } from "./support/loads/load-case.js";
import { playLoad } from "./support/loads/play-load.js";
import { compareMetrics, furtherSeries, missingFamilies } from "./support/metrics/compare-metrics.js";
import { TrafficServer } from "./support/metrics/play-traffic.js";
import { snapshotRecords } from "./support/metrics/snapshot-records.js";
import type { MetricsCase, StatisticsCase, TrafficCase } from "./support/metrics/traffic.js";
import { replay } from "./support/replay.js";
import { statisticsRecord } from "./support/scheduler/statistics-record.js";

const cases = loadLines<CommandCase>("config/cli.jsonl").map((recorded) => ({
  ...recorded,
  id: `cli/${recorded.id}`,
}));

describe("recorded command lines", () => {
  replay<CommandCase>({
    cases,
    differences: commandDifferences,
    run: (_recorded, intended) => playCommand(intended(undefined)),
  });
});

describe("recorded life cycles of a repository", () => {
  replay<Scenario>({
    cases: loadLines("config/lifecycle.jsonl"),
    differences: lifecycleDifferences,
    run: (scenario, intended) =>
      scenario.steps.some(({ signal }) => signal !== undefined)
        ? playShutdown(intended(undefined))
        : playScenario(intended(undefined)),
  });
});

/** All loads of a file; loads of models with Python code need Python. */
function replayLoads(file: string): void {
  const cases = loadLines<LoadCase>(`config/${file}.jsonl`).map((recorded) => ({
    ...recorded,
    id: `${file}/${recorded.id}`,
  }));
  const replayed = (some: readonly LoadCase[]) =>
    replay<LoadCase, PlayedLoad>({
      cases: some,
      differences: loadDifferences,
      run: async (recorded, intended) => {
        const got = await playLoad(recorded);
        return compareLoad(intended(got), got);
      },
    });
  replayed(cases.filter((recorded) => !isPython(recorded)));
  describe.skipIf(!hasPython)(`of Python models${withoutPython}`, () => replayed(cases.filter(isPython)));
}

describe("recorded loads of configurations", () => replayLoads("prototxt"));

describe("recorded loads with completion", () => replayLoads("autocomplete"));

/** Metrics and statistics were recorded with the same scripts, under the same ids. */
function withPrefix<C extends TrafficCase>(prefix: string, cases: readonly C[]): C[] {
  return cases.map((recorded) => ({ ...recorded, id: `${prefix}/${recorded.id}` }));
}

describe("recorded metrics", () => {
  replay<MetricsCase>({
    cases: withPrefix("metrics", loadLines("config/metrics.jsonl")),
    differences: trafficDifferences as readonly Difference<MetricsCase>[],
    run: async (recorded, intended) => {
      const expected = intended(undefined);
      const server = await TrafficServer.start(recorded);
      const differences = compareMetrics(await server.metrics(), expected.metrics_at_start);
      for (const [index, step] of recorded.traffic.entries()) {
        await server.play(step);
        const during = expected.metrics_during?.find((entry) => entry.after_traffic_items === index + 1);
        if (during) differences.push(...compareMetrics(await server.metrics(), during.pending));
      }
      const page = await server.metrics();
      const changed = Object.entries(expected.changed_exact).map(([series, value]) => `${series} ${value}`);
      differences.push(...compareMetrics(page, expected.metrics_after), ...compareMetrics(page, changed));
      differences.push(...furtherSeries(page, expected.metrics_after));
      await server.close();
      return [...server.differences, ...new Set(differences)];
    },
  });
});

describe("recorded metrics page", () => {
  it("describes its families with the same kinds and texts", async () => {
    const server = await TrafficServer.start(
      loadLines<MetricsCase>("config/metrics.jsonl")[0] as MetricsCase,
    );
    const page = await server.metrics();
    await server.close();
    expect(missingFamilies(page, loadText("config/metrics-idle.txt"))).toEqual([]);
  });
});

describe("recorded statistics", () => {
  replay<StatisticsCase>({
    cases: withPrefix("statistics", loadLines("config/statistics.jsonl")),
    differences: trafficDifferences as readonly Difference<StatisticsCase>[],
    run: async (recorded, intended) => {
      const [first, last] = [intended(undefined).snapshots[0], intended(undefined).snapshots.at(-1)];
      const server = await TrafficServer.start(recorded);
      const differences = compareStatistics(server, first);
      for (const step of recorded.traffic) await server.play(step);
      differences.push(...compareStatistics(server, last));
      await server.close();
      return [...server.differences, ...differences];
    },
  });
});

function compareStatistics(
  { triton }: TrafficServer,
  snapshot: StatisticsCase["snapshots"][number] | undefined,
) {
  const got = serviceOf(triton)
    .statistics("", "")
    .map((report) => ({
      name: report.name,
      version: report.version,
      ...statisticsRecord(report),
    }));
  const expected = snapshotRecords(snapshot?.["GET /v2/models/stats"]);
  return compareValues(toJsonValue(expected), toJsonValue(got));
}
