import type { AnswerJson } from "@tritonjs/protocol";

/** The answer of `GET v2`. */
export interface ServerMetadataAnswer {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
}

/** A tensor in the configuration of a model. If `max_batch_size` > 0, `dims` lack the batch axis. */
export interface ModelConfigTensor {
  readonly name: string;
  /** `TYPE_FP32`; `TYPE_STRING` for `BYTES`. */
  readonly data_type: string;
  readonly dims: readonly number[];
  readonly optional?: boolean;
  readonly [field: string]: unknown;
}

/** The configuration of a model as the server prints it: Triton's fields in snake_case. */
export interface ModelConfigAnswer {
  readonly name: string;
  readonly max_batch_size: number;
  readonly input: readonly ModelConfigTensor[];
  readonly output: readonly ModelConfigTensor[];
  readonly model_transaction_policy?: { readonly decoupled: boolean };
  readonly [field: string]: unknown;
}

/** Number and total duration of an event. */
type StatisticDuration = {
  readonly count: number;
  readonly ns: number;
};

/** Statistics of one version of a model. */
type ModelStatisticsAnswer = {
  readonly name: string;
  readonly version: string;
  /** Milliseconds since 1970. */
  readonly last_inference: number;
  readonly inference_count: number;
  readonly execution_count: number;
  /** Durations by event: `success`, `fail`, `queue`, `compute_infer`, ... */
  readonly inference_stats: Readonly<Record<string, StatisticDuration>>;
  readonly response_stats?: Readonly<Record<string, Readonly<Record<string, StatisticDuration>>>>;
  readonly batch_stats: readonly ({ readonly batch_size: number } & Readonly<Record<string, unknown>>)[];
  readonly memory_usage?: readonly {
    readonly type: string;
    readonly id: number;
    readonly byte_size: number;
  }[];
};

/** The answer of the statistics routes. */
export interface StatisticsAnswer {
  readonly model_stats: readonly ModelStatisticsAnswer[];
}

/** A model in the index of the repository. A model that is not loaded has only a name. */
export interface ModelIndexAnswer {
  readonly name: string;
  readonly version?: string;
  readonly state?: string;
  readonly reason?: string;
}

/** Trace or log settings by name. Values of trace settings are strings or lists of strings. */
export type Settings = Readonly<Record<string, AnswerJson>>;

/** A registered region of the system's shared memory. */
export interface SystemRegionAnswer {
  readonly name: string;
  readonly key: string;
  readonly offset: number;
  readonly byte_size: number;
}

/** A registered region of CUDA shared memory. */
export interface CudaRegionAnswer {
  readonly name: string;
  readonly device_id: number;
  readonly byte_size: number;
}
