import { type ModelConfig, toNdArray } from "@tritonjs/protocol";
import type { Tensors } from "../batch/batch-tensors.js";
import type { InferContext, InstanceInfo } from "../callback/infer-func.js";
import type { InstanceDevice } from "../callback/instance-device.js";
import { type ExecutableRequest, type RequestInfo, type RequestScope, requestInfo } from "../request-info.js";
import type { CallbackExecution } from "./backend.js";

export function toCallbackArrays(inputs: Tensors, modelName: string): Record<never, never> {
  const arrays: Record<string, unknown> = {};
  for (const [name, tensor] of inputs) arrays[name] = toNdArray(tensor, "input", name, modelName);
  return arrays;
}

export function toInferRequest(request: ExecutableRequest, modelName: string) {
  const inputs = toCallbackArrays(request.inputs, modelName);
  return withSignal({ ...toRequestInfo(request), inputs }, request);
}

/**
 * Context of a callback: its arguments besides the tensors. Created for each batch; rarely used properties are created
 * on first access.
 */
export class CallbackContext implements InferContext {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  readonly instanceName: string;
  readonly instanceIndex: number;
  readonly device: InstanceDevice;
  readonly #execution: CallbackExecution;
  #requests: InferContext["requests"] | undefined = undefined;

  constructor(info: InstanceInfo, execution: CallbackExecution) {
    this.modelName = info.modelName;
    this.modelVersion = info.modelVersion;
    this.modelConfig = info.modelConfig;
    this.instanceName = info.instanceName;
    this.instanceIndex = info.instanceIndex;
    this.device = info.device;
    this.#execution = execution;
  }

  get requests(): InferContext["requests"] {
    this.#requests ??= this.#execution.requests.map(toRequestInfo);
    return this.#requests;
  }

  get signal(): AbortSignal {
    return this.#execution.signal;
  }

  /** A separate function, which needs no `this`. */
  get infer(): InferContext["infer"] {
    return (...call) => this.#execution.models.infer(...call);
  }

  get stream(): InferContext["stream"] {
    return (...call) => this.#execution.models.stream(...call);
  }
}

/**
 * Creates a request as executors see it: the properties of another request, with these inputs.
 *
 * @param rows rows that count towards the batch
 */
export function withInputs(
  request: RequestInfo & RequestScope & SignalSource,
  inputs: Tensors,
  rows: number,
): ExecutableRequest {
  return withSignal({ ...toRequestInfo(request), inputs, rows }, request);
}

/**
 * Properties of a request for callbacks. They are the same in the list of requests and in the context, on this thread
 * and in workers.
 */
function toRequestInfo(request: RequestInfo & RequestScope): RequestInfo & RequestScope {
  return { ...requestInfo(request), runInContext: (fn) => request.runInContext(fn) };
}

/** Source of a signal, which is created on first use. */
export interface SignalSource {
  readonly signal: AbortSignal;
}

class LazySignal {
  readonly #source: SignalSource;

  constructor(source: SignalSource) {
    this.#source = source;
  }

  get signal(): AbortSignal {
    return this.#source.signal;
  }
}

/**
 * Creates an object of these fields that gets its `signal` from the source on access. The getter belongs to a class. An
 * object literal with a getter has a hidden class of its own, which V8 keeps until the next full collection. It would
 * keep the getter alive, with its batch and all tensors.
 */
export function withSignal<T extends object>(fields: T, source: SignalSource): T & SignalSource {
  return Object.assign(new LazySignal(source), fields);
}
