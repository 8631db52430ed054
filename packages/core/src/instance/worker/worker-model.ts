import type { Tensors } from "../../batch/merge-inputs.js";
import type { PaddingRules } from "../../batch/padding-rules.js";
import type { InstanceInfo } from "../../callable/infer-context.js";
import type { ModelCaller } from "../../callable/model-caller.js";
import type { RequestInfo } from "../../request/request-info.js";
import type { Execution, ExecutionResult } from "../executor.js";
import type { ModuleHost } from "../import-callable.js";

/** Receives the responses of a decoupled model inside a worker. */
export type WorkerResponseStream = Pick<
  Execution,
  "isOpen" | "writable" | "send" | "sendError" | "finish" | "reschedule"
>;

/** A batch inside a worker: the inputs of all requests joined. */
export interface WorkerBatch {
  /** Set for a decoupled model, which answers through it; `execute` then resolves to undefined. */
  readonly stream?: WorkerResponseStream;
  readonly inputs: Tensors;
  /** True if they are not joined by rows, so that the batch cannot be divided again. */
  readonly indivisible: boolean;
  /** Inputs of each request, instead of `inputs`, for a program that `joins` them itself. */
  readonly parts?: readonly Tensors[] | undefined;
  /** Padding rules for joining them. */
  readonly padding?: PaddingRules | undefined;
  /** Calls other models on behalf of the batch; set for a model that `callsModels`. */
  readonly models?: ModelCaller;
  /** Rows of each request. */
  readonly rows: readonly number[];
  /** Properties of the requests; empty for a program of `tensorsOnly`. */
  readonly requests: readonly (RequestInfo & { readonly signal: AbortSignal })[];
}

/** Outputs of the whole batch, or outputs or an error for each request. */
export type WorkerResult = { readonly merged: Tensors } | { readonly separate: readonly ExecutionResult[] };

/** A model inside a worker. */
export interface WorkerModel {
  /** True if the buffers of the outputs may be transferred, because the worker does not use them again. */
  readonly ownsOutputs: boolean;
  /** True if it calls other models. Only then does the worker load the code for it. @default false */
  readonly callsModels?: boolean;
  /** Properties of the loaded model, for instance `executionProvider`. */
  readonly details?: Readonly<Record<string, string>>;
  execute(batch: WorkerBatch): Promise<WorkerResult | undefined>;
  close?(): Promise<void>;
}

/** Services of the worker for the model. */
export interface WorkerHost extends ModuleHost {
  /** True if the lines that a module prints with `console` go to the server's log. */
  readonly logsConsole: boolean;
  /** Shows a warning on the main thread. */
  warn(this: void, message: string): void;
  /** Sends a value to the backend on the main thread, which must survive structured cloning. */
  report(this: void, value: unknown): void;
}

/** A model that was opened before its configuration is complete. */
export interface OpenModel {
  /** Description of the model; must survive structured cloning. */
  readonly description: unknown;
  /** Continues as the model of an instance. */
  load(info: InstanceInfo): WorkerModel;
  close(): Promise<void>;
}

/** Exports of a worker's entry module. */
export interface WorkerEntry {
  load(data: unknown, info: InstanceInfo, host: WorkerHost): Promise<WorkerModel>;
  /** Loads everything that any model of the program needs, ahead of time. A failure is reported by `load`. */
  prepare?(): Promise<unknown>;
  /** Opens a model, for programs that complete the configuration from the open model. */
  open?(data: unknown, host: WorkerHost): Promise<OpenModel>;
}
