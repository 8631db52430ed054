import { isDecoupled, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { exactFigures } from "../measure/distribution.js";
import {
  type BatchTimes,
  type SimulatedBatch,
  type SimulatedLoad,
  type SimulationResult,
  simulate,
} from "../simulate/simulate.js";
import { BatchDurations, classKey, type Recording } from "./recording.js";
import { type ClassFigures, causesOf, RequestClasses } from "./replay-classes.js";

/** A configuration to replay a recording with. */
export interface ReplayConfig {
  /** Name in the report: the file of the configuration. */
  readonly name: string;
  readonly config: ModelConfig;
}

/** Options of {@link replay}. */
export interface ReplayOptions {
  /** Divides the gaps between arrivals: 2 for twice the load. @default 1 */
  readonly speed?: number;
  /**
   * Parameters that decide about the order of requests, such as `{ deadlines: "true" }`. Each configuration is replayed
   * as it is and with them.
   */
  readonly set?: Readonly<Record<string, string>>;
  /** Ends the replay early. The result has the configurations that were finished before. */
  readonly signal?: AbortSignal;
  /** Called before a configuration is played. */
  onConfig?(name: string, index: number): void;
}

/** Figures of a recording, and their prediction for each configuration. */
export interface ReplayResult {
  readonly model: string;
  readonly recorded: ReplayFigures;
  /** Requests of the trace that ran in no batch and were not refused, and were not replayed. */
  readonly leftOut: number;
  /** Duration of a batch that was learned from the recording: `fixedMs + perRowMs * rows`. */
  readonly duration: { readonly fixedMs: number; readonly perRowMs: number };
  /** Largest batch of the recording. Durations of larger ones are extrapolated. */
  readonly largestRecordedBatch: number;
  readonly predictions: readonly ReplayPrediction[];
  /** The replay was interrupted before all configurations were played. */
  readonly interrupted?: boolean;
}

export interface ReplayPrediction {
  readonly name: string;
  readonly figures: ReplayFigures;
  /** Largest batch of the replay. */
  readonly largestBatch: number;
}

/** Figures of a recording, or of its replay with a configuration. */
export interface ReplayFigures {
  /** Requests that were answered. */
  readonly answered: number;
  /** Number of requests that failed, by error text. */
  readonly failures: Readonly<Record<string, number>>;
  /** Answered requests a second. */
  readonly throughput: number;
  /** Milliseconds from arrival to response. */
  readonly latencyMs: Readonly<Record<"mean" | "p50" | "p90" | "p95" | "p99" | "max", number>>;
  readonly batches: number;
  /** Mean number of rows of a batch. */
  readonly meanBatchRows: number;
  /** Number of batches by the reason why they were cut. */
  readonly cuts: Readonly<Record<string, number>>;
  readonly instances: number;
  /** Share of the time in which the instances worked, 0 to 1. */
  readonly busy: number;
  /** Outcomes of requests with a time limit, by priority level and caller. */
  readonly classes: readonly ClassFigures[];
}

/**
 * Plays the arrivals of a recording through the library's scheduler under other configurations, on a virtual clock.
 * Durations of batches are learned from the recorded ones. The same recording always gives the same prediction.
 *
 * @throws TritonError for a configuration that cannot be served
 * @example
 * ```ts
 * const recording = recordingOf(await readTrace(["trace.json"]));
 * const config = readPrototxt(await readFile("config.pbtxt"));
 * const { predictions } = await replay(recording, [{ name: "config.pbtxt", config }], { set: { deadlines: "true" } });
 * console.log(predictions[1].figures.classes);
 * ```
 */
export async function replay(
  recording: Recording,
  configs: readonly ReplayConfig[],
  { speed = 1, set, signal, onConfig }: ReplayOptions = {},
): Promise<ReplayResult> {
  const tried = configs.flatMap((one) => (set === undefined ? [one] : [one, withParameters(one, set)]));
  const played = new PlayedRecording(recording, tried, speed);
  const predictions: ReplayPrediction[] = [];
  for (const [index, { name, config }] of tried.entries()) {
    if (signal?.aborted) break;
    onConfig?.(name, index);
    const result = await simulate({ ...played.load(config), ...(signal && { signal }) }).catch(
      (error: unknown) => {
        if (signal?.aborted) return undefined;
        throw error;
      },
    );
    if (result === undefined) break;
    predictions.push(played.prediction(name, result));
  }
  return played.result(predictions, signal?.aborted === true && predictions.length < tried.length);
}

/** A recording that is played with several configurations. */
class PlayedRecording {
  readonly #recording: Recording;
  readonly #durations: BatchDurations;
  readonly #times: BatchTimes;
  readonly #requests: Recording["requests"];
  readonly #classes: RequestClasses;
  /** True if requests run by themselves, several at a time. */
  readonly #isText: boolean;

  /** @param configs the first one with deadlines has the limits of requests that brought none */
  constructor(recording: Recording, configs: readonly ReplayConfig[], speed: number) {
    const { batches, gapMs, wakeMs, requests } = recording;
    const durations = new BatchDurations(batches);
    this.#recording = recording;
    this.#durations = durations;
    this.#times = { duration: (rows, atMs) => durations.at(atMs * speed, rows), gapMs, wakeMs };
    this.#requests = requests.map((one) => ({ ...one, atMs: one.atMs / speed }));
    const limited = configs.find(({ config }) => config.parameters.deadlines?.stringValue === "true");
    this.#isText = configs.some(({ config }) => isDecoupled(config) && config.maxBatchSize <= 1);
    this.#classes = new RequestClasses(requests, limited?.config);
  }

  load(config: ModelConfig): SimulatedLoad {
    const { instances, concurrency, ownDurationsMs } = this.#recording;
    // Texts take their own times. Those that were refused count as typical ones.
    if (!this.#isText) return { config, instances, requests: this.#requests, times: this.#times };
    const typicalMs = this.#durations.typical(1);
    const requests = this.#requests.map((one, i) => {
      const ownMs = ownDurationsMs[i]!;
      return { ...one, durationMs: Number.isNaN(ownMs) ? typicalMs : ownMs };
    });
    return { config, instances, concurrency, requests, times: this.#times };
  }

  prediction(name: string, result: SimulationResult): ReplayPrediction {
    const { respondMs } = this.#recording;
    const latenciesMs = result.latenciesMs.map((one) => one + respondMs);
    const cuts = Object.fromEntries(Object.entries(result.cuts).filter(([, count]) => count > 0));
    return {
      name,
      figures: {
        ...figuresOf({ ...result, latenciesMs, cuts }),
        classes: this.#classes.count(latenciesMs, causesOf(result.deadlines)),
      },
      largestBatch: result.batches.reduce((most, { rows }) => Math.max(most, rows), 0),
    };
  }

  result(predictions: readonly ReplayPrediction[], interrupted: boolean): ReplayResult {
    const { modelName, leftOut, batches, latenciesMs, lateCauses, refusals, instances, durationMs } =
      this.#recording;
    const cuts: Record<string, number> = {};
    for (const { cut } of batches) if (cut !== undefined) cuts[cut] = (cuts[cut] ?? 0) + 1;
    const classes = this.#classes.count(
      latenciesMs,
      (level, caller) => lateCauses.get(classKey(level, caller)) ?? {},
    );
    return {
      model: modelName,
      recorded: {
        ...figuresOf({ latenciesMs, batches, instances, durationMs, cuts, failures: refusals }),
        classes,
      },
      leftOut,
      duration: this.#durations.line,
      largestRecordedBatch: batches.reduce((most, { rows }) => Math.max(most, rows), 0),
      predictions,
      ...(interrupted && { interrupted }),
    };
  }
}

/** Parameters that {@link ReplayOptions.set} may have: those that decide about the order of requests. */
const SETTABLE = [
  "deadlines",
  "deadline_default_ms",
  "deadline_level_ms",
  "deadline_caller_ms",
  "shares_by",
  "shares_weights",
  "target_latency_ms",
];

/** @throws TritonError INVALID_ARG for a parameter that does not decide about the order of requests */
function withParameters({ name, config }: ReplayConfig, set: Readonly<Record<string, string>>): ReplayConfig {
  const parameters = { ...config.parameters };
  for (const [key, stringValue] of Object.entries(set)) {
    if (!SETTABLE.includes(key)) {
      throw new TritonError("INVALID_ARG", `--set: expected one of ${SETTABLE.join(", ")}, got '${key}'`);
    }
    parameters[key] = { stringValue };
  }
  return { name: `${name} +set`, config: { ...config, parameters } };
}

function figuresOf(run: {
  readonly latenciesMs: Float64Array;
  readonly batches: readonly Pick<SimulatedBatch, "rows" | "startMs" | "endMs">[];
  readonly instances: number;
  readonly durationMs: number;
  readonly cuts: Readonly<Record<string, number>>;
  readonly failures: ReadonlyMap<string, number>;
}): Omit<ReplayFigures, "classes"> {
  const { batches, instances, durationMs, cuts } = run;
  const { count: answered, mean, max, percentile } = exactFigures(run.latenciesMs);
  let [rows, busyMs] = [0, 0];
  for (const batch of batches) {
    rows += batch.rows;
    busyMs += batch.endMs - batch.startMs;
  }
  return {
    answered,
    failures: Object.fromEntries(run.failures),
    throughput: durationMs > 0 ? (1000 * answered) / durationMs : 0,
    latencyMs: {
      mean,
      p50: percentile(50),
      p90: percentile(90),
      p95: percentile(95),
      p99: percentile(99),
      max,
    },
    batches: batches.length,
    meanBatchRows: batches.length === 0 ? 0 : rows / batches.length,
    cuts,
    instances,
    busy: durationMs > 0 ? Math.min(1, busyMs / (instances * durationMs)) : 0,
  };
}
