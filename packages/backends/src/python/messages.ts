import type { Execution, ExecutorContext } from "@tritonjs/core/backend";
import { sequenceFlags, sequenceOfFlags } from "@tritonjs/core/internal/worker";
import {
  type ErrorCode,
  errorReasons,
  type InferOptions,
  isDecoupled,
  type Parameters,
  type ParameterValue,
  TritonError,
} from "@tritonjs/protocol";
import { configText } from "@tritonjs/protocol/config";
import { FrameBody, type MemoryDescription, type PythonTensor } from "./frames.js";
import type { PythonGpuMemory } from "./gpu-memory.js";

/** An error on the wire. Its code is Triton's word. */
interface PythonError {
  readonly code: string;
  readonly message: string;
}

/** Parameters that a model sets: name, type, value. */
type WireParameters = readonly (readonly [string, "bool" | "int" | "string", string | boolean])[];

export interface WireResponse {
  readonly outputs?: readonly PythonTensor[];
  readonly parameters?: WireParameters;
  readonly error?: PythonError;
}

/** The result of one request of a batch; null when a sender answers the request. */
export type PythonResult = WireResponse | { readonly missing: true } | "again" | null;

export interface WireCall {
  readonly type: "infer";
  readonly call: number;
  readonly batch: number;
  readonly stream: boolean;
  readonly model: string;
  readonly version: number;
  readonly id: string;
  readonly correlationId: string | readonly [string];
  readonly flags: number;
  readonly timeout: number;
  readonly parameters: WireParameters;
  readonly requested: readonly string[];
  /** Whether the model wants the outputs on a GPU: `PreferredMemory`. */
  readonly prefersGpu?: boolean;
  readonly inputs: readonly PythonTensor[];
}

/** Any other request of the model to the server. */
export interface WireAsk {
  readonly type: "ask";
  readonly call: number;
  readonly what: string;
  readonly arguments: readonly unknown[];
  readonly files: readonly { readonly name: string; readonly offset: number; readonly size: number }[];
}

/** A module that a model imports and that is not installed. */
export interface MissingModule {
  readonly module: string;
  /** Path and version of the Python that lacks it. */
  readonly python: string;
}

export type FromPython =
  | { readonly type: "started"; readonly python: string; readonly memory?: MemoryDescription }
  | {
      readonly type: "ready";
      readonly canTellReadiness?: boolean;
      /** Most elements of inputs in one request, by their names. */
      readonly maxElements?: Readonly<Record<string, number>>;
      /** Whether it can map memory of GPUs, or why not. Absent if it was not asked. */
      readonly gpu?: true | string;
    }
  | { readonly type: "readiness"; readonly ready?: boolean; readonly error?: string }
  | { readonly type: "failed"; readonly error: string; readonly lacks?: MissingModule }
  | {
      readonly type: "executed";
      readonly batch: number;
      /** Microseconds that the batch took in the process. */
      readonly took?: number;
      readonly memory?: number;
      readonly results?: readonly PythonResult[];
      readonly error?: string;
    }
  | ({
      readonly type: "response";
      readonly batch: number;
      readonly index: number;
      readonly final: boolean;
    } & WireResponse)
  /** No array over a buffer of a GPU is left, so the buffer may be used again. */
  | { readonly type: "released"; readonly gpu: number }
  | { readonly type: "abandoned"; readonly batch: number; readonly index: number }
  | WireCall
  | { readonly type: "taken"; readonly call: number }
  | { readonly type: "stop" | "end"; readonly call: number }
  | WireAsk
  | { readonly type: "forget"; readonly what: "deleteMetric" | "deleteFamily"; readonly id: number }
  | {
      readonly type: "log";
      readonly level: "INFO" | "WARNING" | "ERROR" | "VERBOSE";
      readonly message: string;
    }
  | {
      readonly type: "change";
      readonly call: number;
      readonly how: string;
      readonly arguments: readonly unknown[];
    };

export function readError({ code, message }: PythonError): TritonError {
  // Each code is also a reason.
  const isCode = Object.hasOwn(errorReasons, code) && errorReasons[code as ErrorCode].code === code;
  return new TritonError(isCode ? (code as ErrorCode) : "UNKNOWN", message);
}

export function writeError(thrown: unknown): PythonError {
  const { code, message } = TritonError.from(thrown);
  return { code, message };
}

export function readParameters(wire: WireParameters): Parameters {
  return Object.fromEntries(
    wire.map(([name, type, value]) => [name, type === "int" ? readInteger(String(value)) : value]),
  );
}

function readInteger(text: string): ParameterValue {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

/** Writes parameters as JSON, with all digits of every integer. */
export function parametersJson(parameters: Parameters): string {
  const members = Object.entries(parameters).map(
    ([name, value]) => `${JSON.stringify(name)}:${parameterJson(value)}`,
  );
  return `{${members.join(",")}}`;
}

/**
 * A `number` beyond 2^53 is a double and becomes a float in Python. Values that are not finite have the names that
 * Python's `json` reads and Triton writes: `NaN`, `Infinity`, `-Infinity`.
 */
function parameterJson(value: ParameterValue): string {
  if (typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value)))
    return String(value);
  if (typeof value !== "number" || Number.isSafeInteger(value) || !Number.isInteger(value)) {
    return JSON.stringify(value);
  }
  return value.toExponential();
}

/** The message that describes a model and its instance to the process that loads it. */
export function loadMessage(
  {
    path,
    backend,
  }: { readonly path: string; readonly backend?: { readonly modelDirectory: string } | undefined },
  directory: string,
  context: ExecutorContext,
  gpuLibrary?: string,
) {
  const { info, placement, hosting } = context;
  const { modelName, modelVersion, modelConfig } = info;
  return {
    type: "load",
    path,
    ...(backend && { modelDirectory: backend.modelDirectory }),
    model: modelName,
    instance: placement.name,
    decoupled: isDecoupled(modelConfig),
    inputs: modelConfig.input.map(({ name }) => name),
    outputs: modelConfig.output.map(({ name }) => name),
    states: (modelConfig.sequenceBatching?.state ?? []).map(({ outputName }) => outputName),
    /** CUDA's runtime library of this process, if tensors may stay on a GPU. */
    ...(gpuLibrary !== undefined && { gpuLibrary }),
    reportMemory: hosting.recycle?.aboveMemoryMb !== undefined,
    /** Arguments of `initialize`. */
    arguments: {
      model_config: configText(modelConfig),
      model_instance_kind: placement.kind.replace("KIND_", ""),
      model_instance_name: placement.name,
      model_instance_device_id: String(placement.deviceId),
      model_repository: directory,
      model_version: String(modelVersion),
      model_name: modelName,
    },
  } as const;
}

/**
 * The frame that sends a batch to the model. Its requests are not merged.
 *
 * @param waits true if it is sent while another batch runs: it is dropped if all its requests are cancelled before its turn
 */
export function batchFrame(
  batch: number,
  { requests }: Execution,
  waits: boolean,
  gpu?: PythonGpuMemory,
): { header: object; body: FrameBody } {
  const body = new FrameBody();
  const header = {
    type: "execute",
    batch,
    waits,
    requests: requests.map((request) => ({
      id: request.id,
      correlationId: writeCorrelationId(request.correlationId),
      flags: sequenceFlags(request),
      timeout: request.queueTimeoutMicroseconds,
      parameters: parametersJson(request.parameters),
      requested: request.requestedOutputs,
      ...(request.traceparent !== undefined && { traceparent: request.traceparent }),
      inputs: body.addTensors(request.inputs, gpu),
    })),
  };
  return { header, body };
}

/** A number is sent as text in a list, because it may have more digits than JSON can hold. */
function writeCorrelationId(id: bigint | string | undefined): string | readonly [string] {
  return typeof id === "string" ? [id] : String(id ?? 0n);
}

/** Reads the scalars of a request that a model makes, as options of its call. */
export function readCallScalars({
  correlationId: id,
  flags,
  timeout,
}: WireCall): Pick<InferOptions, "sequence" | "queueTimeoutMicroseconds"> {
  return {
    queueTimeoutMicroseconds: timeout,
    sequence: sequenceOfFlags(typeof id === "string" ? BigInt(id) : id[0], flags),
  };
}
