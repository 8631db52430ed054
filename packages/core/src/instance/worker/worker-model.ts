import type { Tensors } from "../../batch/merge-inputs.js";
import type { PaddingRules } from "../../batch/padding-rules.js";
import type { InstanceInfo } from "../../callable/infer-context.js";
import type { ModelCaller } from "../../callable/model-caller.js";
import type { RequestInfo } from "../../request/request-info.js";
import type { Execution, ExecutionResult } from "../executor.js";
import type { ModuleHost } from "../import-callable.js";

/** Takes the responses of a decoupled model inside a worker. */
export type WorkerResponseStream = Pick<
  Execution,
  "isOpen" | "writable" | "send" | "sendError" | "finish" | "reschedule"
>;

/** A batch inside a worker: the inputs of all requests joined. */
export interface WorkerBatch {
  /** Set for a decoupled model: answers go there, and `execute` resolves to undefined. */
  readonly stream?: WorkerResponseStream;
  readonly inputs: Tensors;
  /** True when they are not joined by rows: the batch cannot be divided again. */
  readonly indivisible: boolean;
  /** Instead of `inputs`, those of each request, for a program that `joins` them itself. */
  readonly parts?: readonly Tensors[] | undefined;
  /** How they are padded when they are joined. */
  readonly padding?: PaddingRules | undefined;
  /** Calls other models on behalf of the batch; set for a model that `callsModels`. */
  readonly models?: ModelCaller;
  /** Rows of each request. */
  readonly rows: readonly number[];
  /** What is known of them; none for a program of `tensorsOnly`. */
  readonly requests: readonly (RequestInfo & { readonly signal: AbortSignal })[];
}

/** Outputs of the whole batch, or outputs or an error for each request. */
export type WorkerResult = { readonly merged: Tensors } | { readonly separate: readonly ExecutionResult[] };

/** A model inside a worker. */
export interface WorkerModel {
  /** True when the buffers of the outputs may be taken away: nobody in the worker looks at them again. */
  readonly ownsOutputs: boolean;
  /** Whether it calls other models. Only then does the worker load what that takes. @default false */
  readonly callsModels?: boolean;
  /** What there is to say about the loaded model: `executionProvider`, for instance. */
  readonly details?: Readonly<Record<string, string>>;
  execute(batch: WorkerBatch): Promise<WorkerResult | undefined>;
  close?(): Promise<void>;
}

/** What the worker offers the model. */
export interface WorkerHost extends ModuleHost {
  /** Has a warning shown on the main thread. */
  warn(this: void, message: string): void;
}

/** A model that is open before it is known how it is configured. */
export interface OpenModel {
  /** What it says of itself; must survive structured cloning. */
  readonly description: unknown;
  /** Goes on as the model of an instance. */
  load(info: InstanceInfo): WorkerModel;
  close(): Promise<void>;
}

/** What the entry module of a worker exports. */
export interface WorkerEntry {
  load(data: unknown, info: InstanceInfo, host: WorkerHost): Promise<WorkerModel>;
  /** Loads what any model of the program needs, ahead of time. A failure is reported by `load`. */
  prepare?(): Promise<unknown>;
  /** For models that complete their configuration with what only an open model shows. */
  open?(data: unknown, host: WorkerHost): Promise<OpenModel>;
}
