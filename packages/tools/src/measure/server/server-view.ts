import type { Duration } from "@tritonjs/protocol";

/** Durations of the statistics extension, in the order of a request's way. */
export const SERVER_STAGES = [
  "success",
  "fail",
  "queue",
  "computeInput",
  "computeInfer",
  "computeOutput",
  "cacheHit",
  "cacheMiss",
] as const;

/** One stage of a request in the server. */
export type ServerStage = (typeof SERVER_STAGES)[number];

/** Counters of one model version at one time. */
export interface ModelCounters {
  readonly name: string;
  readonly version: string;
  readonly inferenceCount: number;
  readonly executionCount: number;
  readonly stages: Readonly<Record<ServerStage, Readonly<Duration>>>;
  /** Executions by their batch size. */
  readonly batches: ReadonlyMap<number, number>;
}

/** A model, and its version where one is told. */
export interface ModelName {
  readonly name: string;
  /** Empty for the latest version. */
  readonly version: string;
}

/** What a measurement asks a server. Each method throws `TritonError`. */
export interface ServerView {
  /** Protocol extensions of the server. */
  extensions(): Promise<readonly string[]>;
  /** The models of the steps of an ensemble; none for other models. */
  steps(model: ModelName): Promise<ModelName[]>;
  /** Counters of the ready versions of a model. */
  counters(model: ModelName): Promise<ModelCounters[]>;
  close?(): void;
}
