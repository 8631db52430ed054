import {
  assertOptions,
  type BFloat16Bits,
  type Elements,
  errorFor,
  errorWithoutStack,
  type Float16Bits,
  INFER_OPTION_TYPES,
  type InferOptions,
  isDecoupled,
  isHalfArray,
  isNdArray,
  onAbort,
  optionTypes,
  Tensor,
  TritonError,
  timeoutError,
} from "@tritonjs/protocol";
import { namingModel } from "../callback/callback-error.js";
import type { TensorCallOptions } from "../callback/infer-func.js";
import type { StartUp } from "../extension/model-source.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { RequestTrace } from "../observe/request-trace.js";
import { type Client, type ClientSender, sendFor } from "../request/client.js";
import { InferenceRequest, type RequestHandle } from "../request/inference-request.js";
import type { InferenceResponse } from "../request/inference-response.js";
import { readScalarOptions } from "../request-info.js";
import type { Clock } from "../system/clock.js";
import {
  type CallBatchAxis,
  type InputValues,
  inCallersWords,
  type OutputArrays,
  toArrays,
  toTensors,
  withoutUnknownId,
} from "./in-process-tensors.js";

/**
 * Runs one inference without a network, through the same request, checks, queue and batcher as over a transport. For a
 * model that is ready it takes one promise, and keeps nothing but the request and a handler.
 */
export function inferInProcess(
  model: ModelVersion,
  values: InputValues,
  options: NestedOptions,
  axis: CallBatchAxis,
): Promise<OutputArrays> {
  return new Promise((resolve, reject) => {
    assertUnary(model);
    const added = axis === "added" && model.config.maxBatchSize > 0;
    // Done before the first wait, so that later changes of the caller to its arrays have no effect.
    const inputs = toTensors(model, values, added);
    const answer = new UnaryAnswer(model, added, options.deviceOutputs, resolve, reject);
    if (model.state === "READY") sendNow(model, inputs, options, answer, axis);
    else sendWhenReady(model, inputs, options, answer, axis).catch(reject);
  });
}

async function sendWhenReady(
  model: ModelVersion,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
  answer: UnaryAnswer,
  axis: CallBatchAxis,
): Promise<void> {
  await awaitReady(model, options);
  // Whether an ensemble is decoupled is known only from its members.
  assertUnary(model);
  sendNow(model, inputs, options, answer, axis);
}

/** Sends a request, and words the error with which it is refused for its caller. */
function sendNow(
  model: ModelVersion,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
  answer: UnaryAnswer,
  axis: CallBatchAxis,
): void {
  try {
    sendInProcess(model, inputs, options, answer);
  } catch (error) {
    throw inCallersWords(error, model.config, inputs, axis);
  }
}

/** Sends a request in process. */
export interface InProcessSender extends ClientSender {
  /** The trace of the request, released with its final outcome. Undefined for a request that is not traced. */
  sampled: RequestTrace | undefined;
}

/**
 * Settles a promise with the answer. It holds no reference to the inputs, so that the memory of a cancelled request is
 * freed at once.
 */
class UnaryAnswer implements InProcessSender {
  forgetClient: (() => void) | undefined = undefined;
  sampled: RequestTrace | undefined = undefined;

  constructor(
    private readonly model: ModelVersion,
    private readonly added: boolean,
    private readonly deviceOutputs: readonly string[] | undefined,
    private readonly resolve: (arrays: OutputArrays) => void,
    private readonly reject: (reason: unknown) => void,
  ) {}

  receive(outcome: InferenceResponse | TritonError | undefined, final: boolean): void {
    const { name, config } = this.model;
    if (final) release(this);
    if (outcome === undefined) this.reject(errorFor("INVALID_OUTPUT", `model '${name}' sent no response`));
    else if (TritonError.is(outcome)) this.reject(withoutUnknownId(namingModel(outcome)));
    else {
      try {
        this.resolve(toArrays(outcome, this.added, config, this.deviceOutputs));
      } catch (error) {
        this.reject(error);
      }
    }
  }
}

/** Ends what a sender has for its request, which is over. */
export function release({ forgetClient, sampled }: InProcessSender): void {
  forgetClient?.();
  sampled?.release();
}

/** The caller of a request in process, who leaves by a signal. */
class Caller implements Client {
  constructor(private readonly signal: AbortSignal) {}

  get gone(): boolean {
    return this.signal.aborted;
  }

  get reason(): TritonError {
    return cancelledError(this.signal);
  }

  onGone(listener: () => void): () => void {
    return onAbort(this.signal, listener);
  }
}

function assertUnary({ name, config }: ModelVersion): void {
  if (!isDecoupled(config)) return;
  throw errorFor(
    "DECOUPLED_MODEL",
    `model '${name}' is decoupled, so infer() cannot return its one response: use stream()`,
  );
}

interface NamedInference {
  readonly registry: ModelRegistry;
  readonly startUp: Pick<StartUp, "underWay" | "over">;
  readonly stopping: boolean;
}

/**
 * Infers with a model by name. While no version of it is in service, waits for those that load, and for a model that the
 * repository is about to load. A reload delays no request: the old version answers.
 */
export async function inferByName(
  { registry, startUp, stopping }: NamedInference,
  modelName: string,
  inputs: InputValues,
  { modelVersion, ...options }: InferOptions & { readonly modelVersion?: number },
): Promise<OutputArrays> {
  let values = inputs;
  if (stopping) throw errorFor("SERVER_NOT_READY", "Server not ready");
  const isServed = registry
    .versions(modelName)
    .some(({ state, version }) => state === "READY" && (modelVersion ?? version) === version);
  if (!isServed && (startUp.underWay || registry.isLoading(modelName))) {
    // The caller may change its arrays during the wait.
    values = Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, copyOf(value)]));
    if (registry.versions(modelName).length === 0) await startUp.over;
    await registry.loading(modelName);
  }
  const model = registry.find(modelName, modelVersion === undefined ? "" : String(modelVersion));
  return inferInProcess(model, values, withChoice(model, options, modelVersion), "given");
}

/** A copy with memory of its own. `structuredClone` alone would turn tensors, and bits of FP16 and BF16, into other values. */
function copyOf(value: unknown): unknown {
  if (isHalves(value)) return value.slice();
  if (value instanceof Tensor) {
    const { datatype, shape, source } = value;
    if (source !== undefined) return value;
    return Tensor.fromElements(datatype, [...shape], copyOf(value.elements) as Elements);
  }
  if (Array.isArray(value) && value.some(isHalves)) return value.map(copyOf);
  const copy = structuredClone(value);
  if (isNdArray(value) && isHalves(value.data)) (copy as { data: unknown }).data = value.data.slice();
  return copy;
}

const isHalves = (value: unknown): value is Float16Bits | BFloat16Bits =>
  value instanceof Uint16Array && isHalfArray(value);

/** Options of a call for which a version was looked up. Without a version, a router may choose another. */
export function withChoice<O extends NestedOptions>(
  model: ModelVersion,
  options: O,
  modelVersion: number | undefined,
): O {
  return modelVersion === undefined && model.router !== undefined
    ? { ...options, anyVersion: true }
    : options;
}

export interface NestedOptions extends InferOptions {
  /** True for a call that names no version of a model with a router. */
  readonly anyVersion?: boolean;
  /** Time limit of the causing request, in milliseconds on the clock. */
  readonly deadline?: number | undefined;
  /** Models that already execute the causing request, outermost first. */
  readonly callers?: readonly string[];
  /** Trace of the causing request. */
  readonly parentTrace?: RequestTrace | undefined;
  /** Outputs to return. @default all outputs */
  readonly requestedOutputs?: readonly string[] | undefined;
  /** Outputs to return as tensors, which may stay on a GPU. @default none */
  readonly deviceOutputs?: readonly string[] | undefined;
}

/** With what callers cannot give. */
const NESTED_OPTION_TYPES = optionTypes<NestedOptions & Pick<TensorCallOptions, "stopSignal" | "decoupled">>({
  ...INFER_OPTION_TYPES,
  deadline: "any",
  callers: "any",
  parentTrace: "any",
  requestedOutputs: "any",
  anyVersion: "any",
  deviceOutputs: "any",
  stopSignal: "any",
  decoupled: "any",
});

/** Checks the names and types of the options of a call. It allocates nothing unless one is wrong. */
function checkOptions(modelName: string, options: NestedOptions): void {
  for (const key in options) {
    const value = options[key as keyof NestedOptions];
    const type = NESTED_OPTION_TYPES[key];
    if ((typeof value === type && value !== null) || type === "any") continue;
    if (value === undefined && type !== undefined) continue;
    assertOptions(`a call of model '${modelName}'`, { [key]: value }, INFER_OPTION_TYPES);
  }
}

/**
 * Makes a request and sends it.
 *
 * @throws the error with which it is refused, and CANCELLED if `signal` has aborted
 */
export function sendInProcess(
  model: ModelVersion,
  inputs: ReadonlyMap<string, Tensor>,
  options: NestedOptions,
  sender: InProcessSender,
): RequestHandle {
  checkOptions(model.name, options);
  const { id, signal, timeoutMs, requestedOutputs, parameters, callers } = options;
  if (parameters !== undefined) checkParameters(model.name, parameters);
  const deadline = isLimited(timeoutMs)
    ? earlier(options.deadline, timeoutMs, model.clock.now())
    : options.deadline;
  const request = new InferenceRequest(model.name);
  request.inputs = inputs;
  if (id !== undefined) request.id = id;
  if (requestedOutputs !== undefined) request.requestedOutputs = requestedOutputs;
  if (options.deviceOutputs !== undefined && model.takesSources) {
    request.innerOutputs = new Set(options.deviceOutputs);
  }
  if (parameters !== undefined) request.parameters = parameters;
  if (callers !== undefined) request.callers = callers;
  if (deadline !== undefined) request.deadline = deadline;
  readScalarOptions(options, request);
  // A nested call is traced only if the request that caused it is.
  if (callers === undefined) sender.sampled = model.tracing?.sample(model.name);
  request.trace = sender.sampled ?? options.parentTrace?.child(model.name);
  try {
    return sendFor(signal && new Caller(signal), model, request, sender, options.anyVersion === true);
  } catch (error) {
    sender.sampled?.release();
    throw error;
  }
}

function earlier(deadline: number | undefined, timeoutMs: number, now: number): number {
  return Math.min(deadline ?? Number.POSITIVE_INFINITY, now + timeoutMs);
}

/** Checks parameters at run time, for callers without TypeScript: not every value can be sent to a worker. */
function checkParameters(model: string, parameters: NonNullable<InferOptions["parameters"]>): void {
  if (typeof parameters !== "object" || parameters === null) {
    throw errorFor(
      "INVALID_PARAMETER",
      `parameters of a request to model '${model}': expected an object, got ${String(parameters)}`,
    );
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (!["string", "number", "bigint", "boolean"].includes(typeof value)) {
      throw errorFor(
        "INVALID_PARAMETER",
        `parameter '${name}' of a request to model '${model}': expected a string, number, bigint or boolean, ` +
          `got ${value === null ? "null" : typeof value}`,
      );
    }
  }
}

/** Makes the error of a request that its caller has cancelled: an `AbortError` with the abort reason as its cause. */
function cancelledError(signal: AbortSignal): TritonError {
  return errorWithoutStack("CANCELLED", "the request was cancelled", {
    name: "AbortError",
    cause: signal.reason,
  });
}

/**
 * Waits until a loading model is ready, or the caller cancels.
 *
 * @throws TritonError UNAVAILABLE for a model that is not served or takes too long, CANCELLED when `signal` aborts.
 */
export async function awaitReady(model: ModelVersion, { signal, timeoutMs }: InferOptions): Promise<void> {
  if (model.state === "LOADING") await untilGivenUp(model.ready, model.clock, signal, timeoutMs);
  if (model.state === "UNAVAILABLE") {
    throw errorFor(
      "MODEL_NOT_READY",
      `model '${model.name}' version ${model.version} is not ready: ${model.reason || model.state.toLowerCase()}`,
    );
  }
}

function isLimited(timeoutMs: number | undefined): timeoutMs is number {
  if (timeoutMs === undefined) return false;
  if (typeof timeoutMs === "number" && !Number.isNaN(timeoutMs)) return timeoutMs < Number.POSITIVE_INFINITY;
  const got = typeof timeoutMs === "number" ? "NaN" : timeoutMs === null ? "null" : typeof timeoutMs;
  throw errorFor("INVALID_OPTION", `timeoutMs: expected a number of milliseconds, got ${got}`);
}

function untilGivenUp(
  ready: Promise<void>,
  clock: Clock,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const expire = () => reject(timeoutError());
    const timer = isLimited(timeoutMs) ? clock.setTimer(timeoutMs, expire) : undefined;
    const forget = onAbort(signal, () => reject(cancelledError(signal!)));
    void ready.then(resolve, reject).finally(() => {
      timer?.cancel();
      forget();
    });
  });
}
