import type { InferBody, TrafficCase, TrafficStep } from "../support/metrics/traffic.js";
import type { Draft } from "./difference.js";
import { cancelledInExecution, cancelledInQueue } from "./traffic/cancelled-requests.js";
import { CountsDraft, requestsOf, type Sent, type TrafficDifference } from "./traffic/counts-draft.js";

/** The answer is the model's own, not an exception and not a rejection. */
function isModelError({ status, response }: TrafficStep): boolean {
  const text = response?.error ?? "";
  return status === 500 && !text.includes("Failed to process the request(s)");
}

function textOf({ repository }: TrafficCase | Draft<TrafficCase>, model: string): string {
  return repository[`${model}/config.pbtxt`] ?? "";
}

function isEnsemble(recorded: TrafficCase | Draft<TrafficCase>, model: string): boolean {
  return /ensemble_scheduling/.test(textOf(recorded, model));
}

/** The model that answered with an error: the requested one, or the first member of an ensemble. */
function answering(recorded: TrafficCase | Draft<TrafficCase>, model: string): string {
  if (!isEnsemble(recorded, model)) return model;
  return /model_name:\s*"([^"]+)"/.exec(textOf(recorded, model))?.[1] ?? model;
}

function failed(recorded: TrafficCase | Draft<TrafficCase>): Sent[] {
  return requestsOf(recorded).filter(({ step }) => isModelError(step));
}

const failedRequests: TrafficDifference = {
  rule: "failed-requests",
  applies: (recorded) => failed(recorded).length > 0,
  amend(draft) {
    for (const { model, times, rows } of failed(draft)) {
      new CountsDraft(draft).change(answering(draft, model), {
        success: -times,
        fail: { reason: "BACKEND", count: times },
        inferences: -times * rows,
        computed: -times,
      });
    }
  },
};

function isCached(recorded: TrafficCase | Draft<TrafficCase>, model: string): boolean {
  const isOn = recorded.flags.some((flag) => flag.startsWith("--cache-config="));
  return (
    isOn &&
    /response_cache\s*{\s*enable:\s*true/.test(textOf(recorded, model)) &&
    !isEnsemble(recorded, model)
  );
}

/** Requests that the recorded server answered from the cache although their shapes differ from earlier ones. */
function wrongHits(recorded: TrafficCase | Draft<TrafficCase>): Sent[] {
  const seen = new Map<string, Set<string>>();
  return requestsOf(recorded).filter((sent) => {
    if (!isCached(recorded, sent.model) || sent.step.status !== 200) return false;
    const inputs = (sent.step.body as InferBody).inputs;
    const bytes = JSON.stringify([sent.model, inputs.map(({ name, data }) => [name, data])]);
    const shapes = JSON.stringify(inputs.map(({ name, shape }) => [name, shape]));
    const known = seen.get(bytes) ?? new Set();
    const isWrong = known.size > 0 && !known.has(shapes);
    seen.set(bytes, known.add(shapes));
    return isWrong;
  });
}

const cacheKey: TrafficDifference = {
  rule: "cache-key",
  applies: (recorded) => wrongHits(recorded).length > 0,
  amend(draft) {
    for (const { model, rows } of wrongHits(draft)) {
      const counts = new CountsDraft(draft);
      counts.change(model, { inferences: rows, executions: 1, computed: 1, hits: -1, misses: 1 });
      const stats = counts.entry(model)?.batch_stats;
      const batch = stats?.find(({ batch_size: size }) => size === rows);
      if (batch !== undefined) batch.compute_infer.count++;
      else stats?.push({ batch_size: rows, compute_infer: { count: 1 } });
    }
  },
};

const NO_COUNTERS = "--metrics-config=counter_latencies=false";

/** The counts of requests stay when the sums of latencies are dropped. */
const countsWithoutLatencies: TrafficDifference = {
  rule: "counts-without-latencies",
  applies: ({ flags, metrics_after: lines }) => flags.includes(NO_COUNTERS) && lines !== undefined,
  amend(draft) {
    const counts = new CountsDraft(draft);
    for (const { step, model, times, rows } of requestsOf(draft)) {
      if (step.status !== 200) continue;
      counts.change(model, { success: times, inferences: times * rows, executions: times });
    }
  },
};

const batchesWithoutAxis: TrafficDifference = {
  rule: "batch-size-without-axis",
  applies: ({ snapshots }) => JSON.stringify(snapshots ?? []).includes('"batch_size":0'),
  amend(draft) {
    for (const snapshot of draft.snapshots ?? []) {
      for (const { batch_stats: stats } of snapshot["GET /v2/models/stats"]?.model_stats ?? []) {
        for (const entry of stats) if (entry.batch_size === 0) entry.batch_size = 1;
      }
    }
  },
};

/** The recorded server looks for the statistics of models in namespaces under another name. */
const namespaceStatistics: TrafficDifference = {
  rule: "namespace-statistics",
  applies: ({ flags, snapshots = [] }) =>
    flags.includes("--model-namespacing=true") && snapshots.some((one) => statisticsError(one) !== undefined),
  amend(draft) {
    for (const [i, snapshot] of (draft.snapshots ?? []).entries()) {
      const names = Object.keys(draft.repository).flatMap(
        (path) => /^([^/]+)\/config\.pbtxt$/.exec(path)?.[1] ?? [],
      );
      snapshot["GET /v2/models/stats"] = {
        model_stats: names.map(emptyEntry),
      } as (typeof snapshot)["GET /v2/models/stats"];
      if (i === 0) continue;
      for (const { model, times, rows } of requestsOf(draft)) {
        const counts = new CountsDraft(draft);
        counts.change(model, {
          success: times,
          inferences: times * rows,
          executions: times,
          computed: times,
        });
        counts.entry(model)?.batch_stats.push({ batch_size: rows, compute_infer: { count: times } });
      }
    }
  },
};

function statisticsError(snapshot: object): string | undefined {
  return (snapshot as { "GET /v2/models/stats"?: { error?: string } })["GET /v2/models/stats"]?.error;
}

function emptyEntry(name: string) {
  const events = [
    "success",
    "fail",
    "queue",
    "compute_input",
    "compute_infer",
    "compute_output",
    "cache_hit",
    "cache_miss",
  ];
  const inference_stats = Object.fromEntries(events.map((event) => [event, { count: 0 }]));
  return { name, version: "1", inference_count: 0, execution_count: 0, inference_stats, batch_stats: [] };
}

/** Differences of metrics and statistics from those of the recorded server. */
export const trafficDifferences: readonly TrafficDifference[] = [
  failedRequests,
  cancelledInQueue,
  cancelledInExecution,
  cacheKey,
  countsWithoutLatencies,
  batchesWithoutAxis,
  namespaceStatistics,
];
