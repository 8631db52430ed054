import {
  type DataType,
  type ErrorCode,
  type ErrorReason,
  type Parameters,
  Tensor,
  TritonError,
  type TritonErrorName,
} from "@tritonjs/protocol";
import type { PaddingRules } from "../batch/batch-layout.js";
import { callbackError } from "../callback/callback-error.js";
import type { ContextCallOptions, InstanceInfo } from "../callback/infer-func.js";
import type { InstanceLimits } from "../config/model-options.js";
import type { ControlAsk, LogLine } from "../instance/js-model.js";
import type { MetricChange } from "../observe/metric-families.js";
import { OutputsWithParameters, type ResponseParameters } from "../request/inference-response.js";
import type { RequestInfo } from "../request-info.js";
import type { HostPolicy } from "../system/host-policy.js";
import type { Allocate } from "../tensor-rows.js";

/*
 * Messages between the main thread and a worker, which is a thread or a process. There is one message per batch in each
 * direction. Tensors are sent as bytes; their buffers are transferred to a thread without a copy.
 */

export interface WireTensor {
  readonly name: string;
  readonly datatype: DataType;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

export interface WireError {
  readonly code: ErrorCode;
  readonly message: string;
  readonly reason: ErrorReason;
  readonly name?: TritonErrorName;
  /** The error that a callback or a library threw. */
  readonly cause?: WireCause;
}

/** A thrown error in a message. */
interface WireCause {
  readonly name: string;
  readonly message: string;
  readonly stack: string;
}

export interface WireInputs {
  readonly inputs: readonly WireTensor[];
  /** True if they are not joined by rows, so that the batch cannot be divided again. */
  readonly indivisible?: boolean;
  /** Inputs of each request, instead of `inputs`, which the worker joins. */
  readonly parts?: readonly (readonly WireTensor[])[];
  readonly padding?: PaddingRules | undefined;
}

interface WireOutputs {
  readonly tensors: readonly WireTensor[];
  readonly parameters?: ResponseParameters;
}

/** Result of one request; "again" if the model rescheduled it. */
export type WireResult = WireOutputs | WireError | "again";

export interface WorkerInit {
  readonly entry: string;
  readonly data: unknown;
  readonly info: InstanceInfo;
  /** True if the worker reports its memory in use after each batch. */
  readonly reportMemory: boolean;
  /** True if the lines that a module prints with `console` go to the server's log. */
  readonly logsConsole: boolean;
}

export type ToWorker =
  /** Run on the cores and with the memory of a policy. Comes before any other message. */
  | { readonly type: "bind"; readonly hostPolicy: HostPolicy }
  /** Load everything that a program needs for any model. */
  | { readonly type: "prepare"; readonly entry: string }
  /** Open a model for its description; `load` follows when an instance takes it over. */
  | { readonly type: "open"; readonly entry: string; readonly data: unknown }
  | { readonly type: "load"; readonly init: WorkerInit }
  | (WireInputs & {
      readonly type: "execute";
      /** Number of the batch: responses of a decoupled model may come after the next batch has begun. */
      readonly batch: number;
      readonly rows: readonly number[];
      /** Outputs that the requests want; empty for all. */
      readonly requestedOutputs: readonly string[];
      /** True if the buffers of the inputs come back with the answer. */
      readonly lendsInputs?: boolean;
      /** Properties of the requests, for a program that needs them; it also gets their cancellations. */
      readonly requests?: readonly RequestInfo[];
    })
  /** The request at `index` of a batch was cancelled. */
  | { readonly type: "cancel"; readonly batch: number; readonly index: number }
  /** The consumer of the request at `index` has taken one more response. */
  | { readonly type: "taken"; readonly batch: number; readonly index: number }
  /** The next answer to a call of the worker; without outputs and error, it was the last. */
  | {
      readonly type: "answer";
      readonly call: number;
      readonly outputs?: Readonly<Record<string, unknown>>;
      readonly parameters?: Parameters;
      readonly error?: WireError;
    }
  /** The answer to a model's request to the server. */
  | {
      readonly type: "answered";
      readonly number: number;
      readonly value?: boolean | undefined;
      readonly error?: WireError;
    }
  /** Close the model. `keep`: stay for another one. */
  | { readonly type: "stop"; readonly keep?: boolean };

/** The buffers of a batch's inputs, if they were lent. */
interface ReturnedInputs {
  readonly lent?: readonly ArrayBuffer[];
}

export type FromWorker =
  /** The model is open; contains its description. */
  | { readonly type: "opened"; readonly description: unknown }
  /** The model is closed, and the worker can take another one. */
  | { readonly type: "free" }
  | {
      readonly type: "ready";
      readonly details: Readonly<Record<string, string>>;
      readonly closes: boolean;
    }
  | { readonly type: "warning"; readonly message: string }
  | { readonly type: "report"; readonly value: unknown }
  | { readonly type: "log"; readonly line: LogLine }
  /** The model changes metrics of its own. */
  | { readonly type: "metrics"; readonly changes: readonly MetricChange[] }
  | { readonly type: "ask"; readonly number: number; readonly ask: ControlAsk }
  | { readonly type: "memory"; readonly bytes: number }
  | { readonly type: "failed"; readonly error: WireError }
  /** Outputs of the whole batch, which have to be split. */
  | ({ readonly type: "merged"; readonly outputs: WireOutputs } & ReturnedInputs)
  /** Outputs or an error for each request. */
  | ({ readonly type: "separate"; readonly results: readonly WireResult[] } & ReturnedInputs)
  | ({ readonly type: "error"; readonly error: WireError } & ReturnedInputs)
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
  /** The worker wants no more answers to a call. */
  | { readonly type: "end"; readonly call: number }
  /** A response of a decoupled model; without outputs and error, the end of the request. */
  | {
      readonly type: "response";
      readonly batch: number;
      readonly index: number;
      readonly final: boolean;
      readonly outputs?: WireOutputs;
      readonly error?: WireError;
      readonly again?: boolean;
    };

/**
 * Packs tensors; `transfer` receives the buffers that may be transferred, and may have some of them already.
 *
 * @param allocate gives the memory for copies, and adds it to `transfer`; by default it is new
 */
export function packTensors(
  tensors: ReadonlyMap<string, Tensor>,
  transfer: ArrayBuffer[],
  owned: boolean,
  allocate?: Allocate,
): WireTensor[] {
  return [...tensors].map(([name, { datatype, shape, bytes }]) => {
    if (transfer.includes(bytes.buffer as ArrayBuffer)) return { name, datatype, shape, bytes };
    const own = owned && bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
    const sent = own ? bytes : copyOf(bytes, allocate);
    if (!transfer.includes(sent.buffer as ArrayBuffer)) transfer.push(sent.buffer as ArrayBuffer);
    return { name, datatype, shape, bytes: sent };
  });
}

function copyOf(bytes: Uint8Array, allocate: Allocate | undefined): Uint8Array {
  if (allocate === undefined) return new Uint8Array(bytes);
  const copy = allocate(bytes.byteLength);
  copy.set(bytes);
  return copy;
}

/** Smaller inputs are allocated for each batch, because that costs less than a buffer that comes back. */
const LEAST_BYTES = 64 * 1024;
const MOST_BUFFERS = 8;
const MOST_BYTES = 64 * 1024 * 1024;
/** A buffer is not used for inputs of less than this share of it. */
const LEAST_SHARE = 1 / 4;

/**
 * Memory for the inputs of batches, which a worker thread sends back with its answers. Pages that are in use already are
 * filled in a sixth of the time that new ones take. Keeps at most 8 buffers, and 64 MiB.
 */
export class BatchMemory {
  /** Longest unused first. */
  readonly #free: ArrayBuffer[] = [];

  /** Returns memory of this size. It has the contents of an earlier batch, so all of it must be written. */
  allocate(byteSize: number): Uint8Array<ArrayBuffer> {
    if (byteSize < LEAST_BYTES || byteSize > MOST_BYTES) return new Uint8Array(byteSize);
    let best = -1;
    for (const [at, { byteLength }] of this.#free.entries()) {
      if (byteLength < byteSize || byteLength * LEAST_SHARE > byteSize) continue;
      if (best < 0 || byteLength < this.#free[best]!.byteLength) best = at;
    }
    const buffer = best < 0 ? new ArrayBuffer(byteSize) : this.#free.splice(best, 1)[0]!;
    return new Uint8Array(buffer, 0, byteSize);
  }

  release(buffers: readonly ArrayBuffer[]): void {
    this.#free.push(...buffers.filter(({ byteLength }) => byteLength >= LEAST_BYTES));
    let bytes = this.#free.reduce((sum, { byteLength }) => sum + byteLength, 0);
    while (this.#free.length > MOST_BUFFERS || bytes > MOST_BYTES) bytes -= this.#free.shift()!.byteLength;
  }
}

export function unpackTensors(tensors: readonly WireTensor[]): Map<string, Tensor> {
  return new Map(
    tensors.map(({ name, datatype, shape, bytes }) => [name, Tensor.fromBytes(datatype, shape, bytes)]),
  );
}

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
  const { code, message, reason, name, cause } = TritonError.from(thrown);
  const packed = packCause(cause);
  return { code, message, reason, name, ...(packed === undefined ? {} : { cause: packed }) };
}

/** Packs what a person needs of an error. A thrown value may be anything, and may throw when it is read. */
function packCause(cause: unknown): WireCause | undefined {
  try {
    if (cause === undefined) return undefined;
    if (!(cause instanceof Error)) return { name: "Error", message: String(cause), stack: "" };
    return { name: String(cause.name), message: String(cause.message), stack: String(cause.stack) };
  } catch {
    return undefined;
  }
}

export function unpackError({ code, message, reason, name = "TritonError", cause }: WireError): TritonError {
  return cause === undefined
    ? new TritonError(code, message, { reason, name })
    : callbackError(message, unpackCause(cause), { code, reason });
}

function unpackCause({ name, message, stack }: WireCause): Error {
  const error = new Error(message);
  for (const [key, value] of [["name", name] as const, ["stack", stack] as const]) {
    Object.defineProperty(error, key, { value, configurable: true, writable: true });
  }
  return error;
}

/*
 * A worker is a thread or a process that runs a model. Both speak the same messages, and differ only in their channel.
 */

/** The connection to a worker. Messages arrive in the order in which they were sent. */
export interface Channel {
  /** Properties of the place: the id of the process. */
  readonly details: Readonly<Record<string, string>>;
  listener: ChannelListener;
  /**
   * Sends a message; a worker that has ended does not get it. The buffers in `transfer` are moved without a copy if
   * possible.
   *
   * @throws for values that cannot be cloned
   */
  post(message: ToWorker, transfer: ArrayBuffer[]): void;
  /** Keep the process alive while the worker lives, as from its start on, or let the process end without it. */
  ref(): void;
  unref(): void;
  /** Lets the worker finish its batches and close its model. It then ends, or is kept for another model. */
  finish(): void;
  /**
   * Ends an idle worker.
   *
   * @param closeWithinMs time limit for closing its model first; undefined if there is nothing to close
   */
  end(closeWithinMs: number | undefined): void;
  /** Ends the worker at once, even while it runs a batch. */
  kill(): void;
}

export interface ChannelListener {
  message(message: FromWorker): void;
  /** The worker has ended, or has another model; this is the last call. `fault` is the cause of its death, if known. */
  gone(how: string, fault: unknown): void;
}

/** Settings for the start of a worker. */
interface WorkerLimits extends InstanceLimits {
  readonly reusable: boolean;
}

/** Starts a worker, or takes a spare one. It waits for a message to open or load a model. */
export type OpenChannel = (limits: WorkerLimits, listener: ChannelListener) => Channel;

export interface WorkerPort {
  /** @throws for values that cannot be cloned */
  post(message: FromWorker, transfer: ArrayBuffer[]): void;
  onMessage(listener: (message: ToWorker) => void): void;
  close(): void;
}
