import type {
  InferBody,
  MetricsCase,
  StatisticsCase,
  StatisticsSnapshot,
  TrafficCase,
  TrafficStep,
} from "../../support/metrics/traffic.js";
import type { Difference, Draft } from "../difference.js";

export type AnyTraffic = TrafficCase & Partial<MetricsCase> & Partial<StatisticsCase>;

/** A rule about metrics and statistics. */
export type TrafficDifference = Difference<AnyTraffic>;

type Entry = Draft<StatisticsSnapshot["model_stats"][number]>;

/** The reason of a failed request in the metrics. */
export type Reason = "BACKEND" | "CANCELED" | "OTHER" | "REJECTED";

/** Requests counted for one model, in the terms of the statistics. */
export interface Change {
  readonly success?: number;
  readonly fail?: { readonly reason: Reason; readonly count: number };
  /** Rows. */
  readonly inferences?: number;
  readonly executions?: number;
  /** Requests whose tensors went through the model. */
  readonly computed?: number;
  readonly hits?: number;
  readonly misses?: number;
}

/** The counts after a recorded traffic, on the metrics page and in the statistics. */
export class CountsDraft {
  constructor(private readonly recorded: Draft<AnyTraffic>) {}

  change(model: string, change: Change): void {
    const { success = 0, fail, inferences = 0, executions = 0, hits = 0, misses = 0 } = change;
    this.#add("nv_inference_request_success", model, success);
    if (fail !== undefined) this.#add("nv_inference_request_failure", model, fail.count, fail.reason);
    this.#add("nv_inference_count", model, inferences);
    this.#add("nv_inference_exec_count", model, executions);
    this.#add("nv_cache_num_hits_per_model", model, hits);
    this.#add("nv_cache_num_misses_per_model", model, misses);
    const entry = this.entry(model);
    if (entry !== undefined) addTo(entry, change);
  }

  /** The waiting requests of a model while the traffic continues. */
  changePending(model: string, change: number, afterStep: number): void {
    for (const during of this.recorded.metrics_during ?? []) {
      if (during.after_traffic_items > afterStep)
        during.pending = during.pending.map(edit("nv_inference_pending_request_count", model, change));
    }
  }

  /** The last statistics of a model. */
  entry(model: string): Entry | undefined {
    const snapshot = this.recorded.snapshots?.at(-1)?.["GET /v2/models/stats"];
    return snapshot?.model_stats?.find(({ name }) => name === model) as Entry | undefined;
  }

  #add(family: string, model: string, change: number, reason?: string): void {
    if (change === 0) return;
    const { recorded } = this;
    if (recorded.metrics_after !== undefined) {
      recorded.metrics_after = recorded.metrics_after.map(edit(family, model, change, reason));
    }
    const exact = recorded.changed_exact ?? {};
    for (const [series, value] of Object.entries(exact)) {
      if (isSeries(series, family, model, reason)) exact[series] = `${Number(value) + change}`;
    }
  }
}

function isSeries(series: string, family: string, model: string, reason?: string): boolean {
  const labels = series.startsWith(`${family}{`) && series.includes(`model="${model}"`);
  return labels && (reason === undefined || series.includes(`reason="${reason}"`));
}

function edit(family: string, model: string, change: number, reason?: string) {
  return (line: string): string => {
    if (!isSeries(line, family, model, reason)) return line;
    const at = line.lastIndexOf(" ");
    return `${line.slice(0, at)} ${Number(line.slice(at + 1)) + change}`;
  };
}

function addTo(entry: Entry, change: Change): void {
  const { success = 0, fail, inferences = 0, executions = 0, computed = 0, hits = 0, misses = 0 } = change;
  const stats = entry.inference_stats as Record<string, { count: number }>;
  const add = (event: string, count: number) => {
    const counted = stats[event];
    if (counted !== undefined) counted.count += count;
  };
  entry.inference_count += inferences;
  entry.execution_count += executions;
  for (const event of ["success", "queue"]) add(event, success);
  add("fail", fail?.count ?? 0);
  for (const event of ["compute_input", "compute_infer", "compute_output"]) add(event, computed);
  add("cache_hit", hits);
  add("cache_miss", misses);
}

/** A request of the traffic and how often it was sent. */
export interface Sent {
  readonly step: TrafficStep;
  readonly place: number;
  readonly model: string;
  readonly times: number;
  readonly rows: number;
}

/** The requests of a traffic in their order. */
export function requestsOf({ traffic, repository }: TrafficCase | Draft<TrafficCase>): Sent[] {
  return traffic.flatMap((given, place): Sent[] => {
    const step = given as TrafficStep;
    const model = step["gRPC ModelInfer"] ?? /^\/v2\/models\/([^/]+)/.exec(step.POST ?? "")?.[1];
    if (model === undefined) return [];
    const text = repository[`${model}/config.pbtxt`] ?? "";
    const isBatched = /max_batch_size:\s*[1-9]/.test(text);
    const shape =
      step.INPUT0 !== undefined
        ? [step.INPUT0.length]
        : (step.body as InferBody | undefined)?.inputs?.[0]?.shape;
    return [{ step, place, model, times: step.times ?? 1, rows: isBatched ? (shape?.[0] ?? 1) : 1 }];
  });
}
