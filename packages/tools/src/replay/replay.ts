import type { ModelConfig } from "@tritonjs/protocol";
import { BatchDurations } from "../simulate/batch-durations.js";
import { simulate } from "../simulate/simulate.js";
import type { Recording } from "./recording.js";
import { predictedFigures, type ReplayFigures, recordedFigures } from "./replay-figures.js";

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
  /** Ends the replay early. The result has the configurations that were finished before. */
  readonly signal?: AbortSignal;
  /** Called before a configuration is played. */
  onConfig?(name: string, index: number): void;
}

/** What was recorded, and what each configuration would have made of it. */
export interface ReplayResult {
  readonly model: string;
  readonly recorded: ReplayFigures;
  /** Requests of the trace that ran in no batch, and were not replayed. */
  readonly leftOut: number;
  /** Duration of a batch that was learned from the recording: `fixedMs + perRowMs * rows`. */
  readonly duration: { readonly fixedMs: number; readonly perRowMs: number };
  /** Largest batch of the recording. Durations of larger ones are extrapolated. */
  readonly largestRecordedBatch: number;
  readonly predictions: readonly {
    readonly name: string;
    readonly figures: ReplayFigures;
    /** Largest batch of the replay. */
    readonly largestBatch: number;
  }[];
  /** The replay was interrupted before all configurations were played. */
  readonly interrupted?: boolean;
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
 * const { predictions } = await replay(recording, [{ name: "config.pbtxt", config }]);
 * console.log(predictions[0].figures.latencyMs.p99);
 * ```
 */
export async function replay(
  recording: Recording,
  configs: readonly ReplayConfig[],
  { speed = 1, signal, onConfig }: ReplayOptions = {},
): Promise<ReplayResult> {
  const { batches, instances, respondMs, gapMs, wakeMs } = recording;
  const requests = recording.requests.map((one) => ({ ...one, atMs: one.atMs / speed }));
  const durations = new BatchDurations(batches);
  const times = {
    duration: (rows: number, atMs: number) => durations.at(atMs * speed, rows),
    gapMs,
    wakeMs,
  };
  const predictions = [];
  for (const [index, { name, config }] of configs.entries()) {
    if (signal?.aborted) break;
    onConfig?.(name, index);
    const options = { config, instances, requests, times, ...(signal === undefined ? {} : { signal }) };
    const result = await simulate(options).catch((error: unknown) => {
      if (signal?.aborted) return undefined;
      throw error;
    });
    if (result === undefined) break;
    const largestBatch = result.batches.reduce((most, { rows }) => Math.max(most, rows), 0);
    predictions.push({ name, figures: predictedFigures(result, respondMs), largestBatch });
  }
  return {
    model: recording.modelName,
    recorded: recordedFigures(recording),
    leftOut: recording.leftOut,
    duration: durations.line,
    largestRecordedBatch: batches.reduce((most, { rows }) => Math.max(most, rows), 0),
    predictions,
    ...(signal?.aborted && predictions.length < configs.length && { interrupted: true }),
  };
}
