import { describe, expect, it } from "vitest";
import { compareValues } from "./support/compare-values.js";
import type { Subject } from "./support/coverage.js";
import { toJsonValue } from "./support/json-value.js";
import { loadLines, loadText } from "./support/load-cases.js";
import { compareMetrics, missingFamilies } from "./support/metrics/compare-metrics.js";
import { TrafficServer } from "./support/metrics/play-traffic.js";
import { snapshotRecords } from "./support/metrics/snapshot-records.js";
import {
  type MetricsCase,
  repositoryModels,
  type StatisticsCase,
  type TrafficCase,
} from "./support/metrics/traffic.js";
import { replay } from "./support/replay.js";
import { statisticsRecord } from "./support/scheduler/statistics-record.js";
import { readModels } from "./support/served-models.js";

/** Metrics and statistics were recorded of the same scripts, under the same ids. */
function withPrefix<C extends TrafficCase>(prefix: string, cases: readonly C[]): C[] {
  return cases.map((recorded) => ({ ...recorded, id: `${prefix}/${recorded.id}` }));
}

function subject({ id, flags, repository, traffic }: TrafficCase): Subject {
  const models = [...readModels(repositoryModels(repository)).values()];
  return {
    area: id,
    features: new Set(models.flatMap(({ features }) => [...features])),
    operations: traffic.map(({ POST: path }) => path?.split("/").at(-1) ?? ""),
    flags,
  };
}

describe("recorded metrics", () => {
  replay<MetricsCase>({
    cases: withPrefix("metrics", loadLines("config/metrics.jsonl")),
    subject,
    run: async (recorded) => {
      const server = await TrafficServer.start(recorded);
      const differences = compareMetrics(await server.metrics(), recorded.metrics_at_start);
      for (const [index, step] of recorded.traffic.entries()) {
        await server.play(step);
        const during = recorded.metrics_during?.find((entry) => entry.after_traffic_items === index + 1);
        if (during) differences.push(...compareMetrics(await server.metrics(), during.pending));
      }
      const page = await server.metrics();
      const changed = Object.entries(recorded.changed_exact).map(([series, value]) => `${series} ${value}`);
      differences.push(...compareMetrics(page, recorded.metrics_after), ...compareMetrics(page, changed));
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
    subject,
    run: async (recorded) => {
      const server = await TrafficServer.start(recorded);
      for (const step of recorded.traffic) await server.play(step);
      const got = server.triton.service.statistics("", "").map((report) => ({
        name: report.name,
        version: report.version,
        ...statisticsRecord(report),
      }));
      await server.close();
      const expected = snapshotRecords(recorded.snapshots.at(-1)?.["GET /v2/models/stats"]);
      return [...server.differences, ...compareValues(toJsonValue(expected), toJsonValue(got))];
    },
  });
});
