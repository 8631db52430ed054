import {
  type DataType,
  type ErrorCode,
  type ErrorReason,
  type Parameters,
  Tensor,
  TritonError,
} from "@tritonjs/protocol";
import type { PaddingRules } from "../../batch/padding-rules.js";
import type { InstanceInfo } from "../../callable/infer-context.js";
import type { ContextCallOptions } from "../../callable/model-caller.js";

import type { MetricChange } from "../../observe/metric-change.js";

import type { RequestInfo } from "../../request/request-info.js";
import { OutputsWithParameters, type ResponseParameters } from "../../response/response-parameters.js";

import type { ControlAsk } from "../module/model-control.js";
import type { LogLine } from "../module/model-logger.js";

/*
 * What travels between the main thread and a worker, which is a thread or a process: one message a batch each way,
 * tensors as their bytes, whose buffers are transferred to a thread and not copied.
 */

/** A tensor on its way. */
export interface WireTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** An error on its way. */
export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly reason: ErrorReason;
}

/** The inputs of a batch on their way. */
export interface WireInputs {
  /** Joined. */
  readonly inputs: readonly WireTensor[];
  /** True when they are not joined by rows: the batch cannot be divided again. */
  readonly indivisible?: boolean;
  /** Instead of `inputs`, those of each request, to be joined by the worker. */
  readonly parts?: readonly (readonly WireTensor[])[];
  /** How they are padded when they are joined. */
  readonly padding?: PaddingRules | undefined;
}

/** Outputs on their way, with the parameters that go with them. */
export interface WireOutputs {
  readonly tensors: readonly WireTensor[];
  readonly parameters?: ResponseParameters;
}

/** What became of one request; "again" when the model wants to see it once more. */
export type WireResult = WireOutputs | WireError | "again";

/** What a worker is told of the instance that it runs. */
export interface WorkerInit {
  /** Module that exports `load(data, info)`. */
  readonly entry: string;
  readonly data: unknown;
  readonly info: InstanceInfo;
  /** Whether to tell after each batch how much memory is in use. */
  readonly reportMemory: boolean;
}

export type ToWorker =
  /** Load what a program needs for any model. */
  | { readonly type: "prepare"; readonly entry: string }
  /** Open a model for its description; `load` follows when an instance takes it over. */
  | { readonly type: "open"; readonly entry: string; readonly data: unknown }
  | { readonly type: "load"; readonly init: WorkerInit }
  | (WireInputs & {
      readonly type: "execute";
      /** Number of the batch: responses of a decoupled model may come after the next one has begun. */
      readonly batch: number;
      /** Rows of each request. */
      readonly rows: readonly number[];
      /** What is known of them, for a program that asks; it hears of their cancellation too. */
      readonly requests?: readonly RequestInfo[];
    })
  /** The request at `index` of a batch was given up. */
  | { readonly type: "cancel"; readonly batch: number; readonly index: number }
  /** One more response of the request at `index` has been taken by its consumer. */
  | { readonly type: "taken"; readonly batch: number; readonly index: number }
  /** The next answer to a call of the worker; neither outputs nor error after the last. */
  | {
      readonly type: "answer";
      readonly call: number;
      readonly outputs?: Readonly<Record<string, unknown>>;
      readonly parameters?: Parameters;
      readonly error?: WireError;
    }
  /** The answer to what the model asked of the server. */
  | {
      readonly type: "answered";
      readonly number: number;
      readonly value?: boolean | undefined;
      readonly error?: WireError;
    }
  /** Close the model. `keep`: stay, for another one. */
  | { readonly type: "stop"; readonly keep?: boolean };

export type FromWorker =
  /** The model is open; what it says of itself. */
  | { readonly type: "opened"; readonly description: unknown }
  /** The model is closed, and the worker can take another one. */
  | { readonly type: "free" }
  | {
      readonly type: "ready";
      readonly details: Readonly<Record<string, string>>;
      /** Whether the model has something to do before the worker ends. */
      readonly closes: boolean;
    }
  | { readonly type: "warning"; readonly message: string }
  /** The model writes to the server's log. */
  | { readonly type: "log"; readonly line: LogLine }
  /** The model changes metrics of its own. */
  | { readonly type: "metrics"; readonly changes: readonly MetricChange[] }
  /** The model asks something of the server's repository. */
  | { readonly type: "ask"; readonly number: number; readonly ask: ControlAsk }
  /** Memory in use, told before the answer to a batch. */
  | { readonly type: "memory"; readonly bytes: number }
  | { readonly type: "failed"; readonly error: WireError }
  /** Outputs of the whole batch, to be split. */
  | { readonly type: "merged"; readonly outputs: WireOutputs }
  /** Outputs or an error for each request. */
  | { readonly type: "separate"; readonly results: readonly WireResult[] }
  | { readonly type: "error"; readonly error: WireError }
  /** The callback of a decoupled model has returned. */
  | { readonly type: "returned" }
  /** A call of another model on behalf of a batch. */
  | {
      readonly type: "call";
      readonly call: number;
      readonly batch: number;
      readonly modelName: string;
      readonly inputs: Readonly<Record<string, unknown>>;
      readonly options: Omit<ContextCallOptions, "signal">;
      readonly stream: boolean;
    }
  /** The worker wants the next answer to a call. */
  | { readonly type: "next"; readonly call: number }
  /** The worker wants no more of a call. */
  | { readonly type: "end"; readonly call: number }
  /** A response of a decoupled model; neither outputs nor error for the end without one. */
  | {
      readonly type: "response";
      readonly batch: number;
      readonly index: number;
      readonly final: boolean;
      readonly outputs?: WireOutputs;
      readonly error?: WireError;
      /** The model wants to see the request again. */
      readonly again?: boolean;
    };

/** Packs tensors; `transfer` receives the buffers that may go along. */
export function packTensors(
  tensors: ReadonlyMap<string, Tensor>,
  transfer: ArrayBuffer[],
  owned: boolean,
): WireTensor[] {
  return [...tensors].map(([name, { datatype, shape, bytes }]) => {
    const own = owned && bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
    const sent = own ? bytes : new Uint8Array(bytes);
    if (!transfer.includes(sent.buffer as ArrayBuffer)) transfer.push(sent.buffer as ArrayBuffer);
    return { name, datatype, shape, bytes: sent };
  });
}

export function unpackTensors(tensors: readonly WireTensor[]): Map<string, Tensor> {
  return new Map(
    tensors.map(({ name, datatype, shape, bytes }) => [name, Tensor.fromBytes(datatype, shape, bytes)]),
  );
}

/** Packs outputs as {@link packTensors} does. */
export function packOutputs(
  outputs: ReadonlyMap<string, Tensor>,
  transfer: ArrayBuffer[],
  owned: boolean,
): WireOutputs {
  const tensors = packTensors(outputs, transfer, owned);
  return outputs instanceof OutputsWithParameters ? { tensors, parameters: outputs.parameters } : { tensors };
}

export function unpackOutputs({ tensors, parameters }: WireOutputs): Map<string, Tensor> {
  const outputs = unpackTensors(tensors);
  return parameters === undefined ? outputs : new OutputsWithParameters(outputs, parameters);
}

export function packError(thrown: unknown): WireError {
  const { code, message, reason } = TritonError.from(thrown);
  return { code, message, reason };
}

export function unpackError({ code, message, reason }: WireError): TritonError {
  return new TritonError(code, message, { reason });
}
