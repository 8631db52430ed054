import type { DataType } from "@tritonjs/core";
import type { ParameterValue } from "@tritonjs/protocol";
import type { ExecutionRecord } from "../behaviours/recorder.js";

/** A tensor as the scenarios write it. */
export interface TensorText {
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

/** An action of a client. */
export interface Action {
  readonly at_ms: number;
  readonly do: "infer" | "cancel" | "load" | "unload";
  readonly id: string;
  readonly request_id?: string;
  readonly in?: Readonly<Record<string, TensorText>>;
  readonly priority?: number;
  readonly timeout_us?: number;
  readonly sequence?: { readonly id: number | string; readonly start?: boolean; readonly end?: boolean };
  readonly parameters?: Readonly<Record<string, ParameterValue>>;
  readonly outputs?: readonly string[];
  readonly model?: string;
  readonly stream?: boolean;
}

/** An answer as the client saw it. */
export interface ResponseRecord {
  readonly id: string;
  readonly ok: boolean;
  readonly outputs?: Readonly<Record<string, TensorText>>;
  readonly parameters?: Readonly<Record<string, ParameterValue>>;
  readonly code?: string;
  readonly message?: string;
}

/** Counts of one model after the scenario. */
export interface StatisticsRecord {
  readonly inference_count: number;
  readonly execution_count: number;
  readonly success: number;
  readonly fail: number;
  readonly queue: number;
  readonly compute_input: number;
  readonly compute_infer: number;
  readonly compute_output: number;
  readonly cache_hit: number;
  readonly cache_miss: number;
  readonly batch_stats: readonly { readonly batch_size: number; readonly compute_infer: number }[];
}

/** The outcome of a scenario. */
export interface Outcome {
  /** Executions while the model loaded: its warm-up. */
  readonly load_executions?: readonly ExecutionRecord[];
  readonly executions: readonly ExecutionRecord[];
  readonly responses: readonly ResponseRecord[];
  /** In place of executions, where only their number at each instance is certain. */
  readonly executions_by_instance?: Readonly<Record<string, number>>;
  /** Ids in the order of their answers; answers less than 12 ms apart share a group. A text is not compared. */
  readonly arrival_order: readonly (readonly string[])[] | string;
  /** By model in scenarios with several. */
  readonly statistics: StatisticsRecord | Readonly<Record<string, StatisticsRecord>>;
}

/** One line of `scheduler/scenarios.jsonl`. */
export interface Scenario {
  readonly id: string;
  readonly area: string;
  readonly note: string;
  readonly config_pbtxt: string;
  readonly extra_models?: Readonly<Record<string, string>>;
  readonly model_behaviour: string;
  readonly env: Readonly<Record<string, string>>;
  readonly server_flags: readonly string[];
  /** Files in the model's folder by path, their content in hexadecimal. */
  readonly files?: Readonly<Record<string, string>>;
  readonly actions: readonly Action[];
  readonly unordered_executions?: boolean;
  readonly outcome: Outcome & {
    /** The model did not load: the client's text, and the reason. */
    readonly load_error?: string;
    readonly load_error_detail?: string;
  };
}
