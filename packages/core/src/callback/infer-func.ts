import type {
  InferOptions,
  InputsOf,
  ModelConfig,
  OutputList,
  OutputsOf,
  Tensor,
  TensorSpec,
  TensorValue,
  TritonError,
  toNdArray,
} from "@tritonjs/protocol";
import type { RequestTrace } from "../observe/request-trace.js";
import type { InferenceResponse } from "../request/inference-response.js";
import type { RequestInfo, RequestScope } from "../request-info.js";
import type { InstanceDevice } from "./instance-device.js";

/** Sends the responses to one request of a decoupled model, also after the callback has returned. */
export interface ResponseSender<O extends readonly TensorSpec[]> {
  /** False once the request is over: closed by the model, or cancelled by its client. */
  readonly isOpen: boolean;
  /**
   * Sends a response or an error. The request continues unless the response is `final`. Resolves when the client can
   * take more: a callback that awaits it never fills memory with unread responses.
   */
  send(result: InferFuncResult<O>, options?: { readonly final?: boolean }): Promise<void>;
  /** Ends the request. Every sender must be closed, or must send a final response. */
  close(): void;
}

/** One request as a plain callback sees it. The tensors have the batch axis if the model has one. */
export interface InferRequest<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[] = readonly TensorSpec[],
> extends RequestInfo,
    RequestScope {
  readonly inputs: InputsOf<I>;
  /** Aborted when this request is cancelled. */
  readonly signal: AbortSignal;
  /** Sends responses to the request. For decoupled models only. */
  readonly responseSender: ResponseSender<O>;
}

/**
 * Result of a plain callback for one request: its outputs by name or as a list in their order, an error for this
 * request alone, or `RESCHEDULE` to get it again.
 */
export type InferFuncResult<O extends readonly TensorSpec[], N extends PropertyKey = never> =
  | CheckedOutputs<O, N>
  | readonly TensorValue<O[number]["dtype"]>[]
  | Error
  | typeof RESCHEDULE;

/** A value now or later, or for decoupled models any number of values over time. */
export type Answer<T> = T | Promise<T> | AsyncIterable<T> | Iterable<T>;

/**
 * A plain callback. It gets all requests of a batch and returns as many results, in the same order. For a decoupled
 * model it yields such lists, with `undefined` for a request that has no response in this step. Alternatively it
 * returns nothing, and answers through the `responseSender` of each request.
 */
export type PlainInferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> = (
  requests: readonly InferRequest<I, O>[],
  context: InferContext,
) => Answer<readonly (InferFuncResult<O> | undefined)[]> | Promise<void> | void;

/**
 * Outputs of a callback that names the outputs `N`. The type of a name that the model lacks is a sentence. The states of
 * a sequence are not declared as outputs, so a callback that returns them needs a cast.
 */
export type CheckedOutputs<O extends readonly TensorSpec[], N extends PropertyKey> = OutputsOf<O> & {
  readonly [Key in N]?: Key extends string
    ? Key extends O[number]["name"]
      ? unknown
      : "the model has no output of this name"
    : unknown;
};

/**
 * Argument of `batch` and `sample`: a function from one ndarray per input to the outputs. For a decoupled model it is a
 * generator, which yields the outputs of each response.
 *
 * @typeParam N names that the outputs have, which the compiler infers from the function
 */
export type TensorFunc<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  N extends PropertyKey = never,
> = (inputs: InputsOf<I>, context: InferContext) => Answer<CheckedOutputs<O, N> | OutputList<NoInfer<O>>>;

/**
 * How a callback takes its requests: all rows at once, the tensors of one request, the list of requests, or step by
 * step while requests join and leave.
 */
type CallableStyle = "batch" | "sample" | "requests" | "stepwise";

/** Key under which functions, also decorated ones, keep their style. Copies of the library, and threads, share it. */
export const callableStyle = Symbol.for("tritonjs.callableStyle");

/**
 * A callback made by `batch`, `sample`, or a decorator around them. It is opaque: only `bind` calls it.
 *
 * The call signature without parameters is there for type inference. TypeScript first looks at the signatures around a
 * call that returns a function, before it looks into the call. It then takes the parameters of a plain callback from
 * the only signature that has any.
 */
export interface StyledInferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  (): never;
  readonly [callableStyle]: CallableStyle;
  readonly [tensorFunc]?: TensorFunc<I, O>;
}

/**
 * A function of tensors with decorators around it (`firstValue`, `padBatch`, ...). It is opaque: only `batch` and
 * `sample` take it.
 */
export interface DecoratedTensorFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  (): never;
  readonly [tensorFunc]?: TensorFunc<I, O>;
}

/** Argument of `batch`, `sample`, and the decorators inside them. */
export type AnyTensorFunc<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  N extends PropertyKey = never,
> = TensorFunc<I, O, N> | DecoratedTensorFunc<I, O>;

declare const tensorFunc: unique symbol;

/** A function that computes a model. */
export type InferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> =
  | StyledInferFunc<I, O>
  | PlainInferFunc<I, O>;

/** A callback of any model, without the types of its tensors. */
export type AnyInferFunc = InferFunc<readonly TensorSpec[], readonly TensorSpec[]>;

export function styleOf(fn: AnyInferFunc): CallableStyle {
  return (fn as Partial<StyledInferFunc<[], []>>)[callableStyle] ?? "requests";
}

/** Key that marks wrappers of generator functions. */
export const generates = Symbol.for("tritonjs.generates");

/** True for a generator function, also if it is wrapped by `batch` or `sample`. */
export function isGenerator(fn: unknown): boolean {
  if (typeof fn !== "function") return false;
  return (
    generates in fn || /^(Async)?GeneratorFunction$/.test(Object.prototype.toString.call(fn).slice(8, -1))
  );
}

/** Properties of an instance that stay the same for all of its executions. */
export interface InstanceInfo {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  /** Triton's name of the instance, such as `linear_0`. */
  readonly instanceName: string;
  /** Index of the instance among the instances of the model. */
  readonly instanceIndex: number;
  readonly device: InstanceDevice;
}

/**
 * Second argument of a callback: information about the batch and its instance, and calls of other models.
 *
 * @example
 * ```ts
 * batch(async ({ x }, context) => {
 *   const response = await fetch(url, { signal: context.signal });
 *   console.log(context.instanceName, context.requests.map((request) => request.id));
 *   const { scores } = await context.infer("other-model", { x });
 *   return { y: await run(x, response) };
 * });
 * ```
 */
export interface InferContext extends InstanceInfo, ModelCaller {
  /** Aborted when every request of the batch has been cancelled. */
  readonly signal: AbortSignal;
  /** The requests of the batch, in the order of their rows. */
  readonly requests: readonly (RequestInfo & RequestScope)[];
}

/** Values by input name, in any form that a tensor can be given in, with the batch axis if the model has one. */
export type CallInputs = Readonly<Record<string, unknown>>;

/** ndarrays by output name. */
export type CallOutputs = Record<string, ReturnType<typeof toNdArray>>;

/** Options of a call of one model from another. The call also ends when the caller's requests are cancelled or run out of time. */
export interface ContextCallOptions extends InferOptions {
  /** Version of the called model. @default the highest version that is ready */
  readonly modelVersion?: number;
  /**
   * Outputs that the callback only passes on to other models. They come as `Tensor`, and stay on the GPU of an ONNX
   * model of the engine `native`. A callback in a worker gets all outputs as ndarrays. @default none
   */
  readonly deviceOutputs?: readonly string[];
}

/** Calls other models from within a callback. */
export interface ModelCaller {
  /**
   * Infers with another model, through the same checks, queue and batcher as any request. The call ends when the
   * caller's requests are cancelled or run out of time.
   *
   * @typeParam R type of the outputs, such as `{ y: NdArray<Float32Array> }`
   * @throws TritonError NOT_FOUND for an unknown model, INTERNAL for a model that already executes the same request;
   * otherwise as `ModelHandle.infer`.
   */
  readonly infer: <R extends object = CallOutputs>(
    modelName: string,
    inputs: CallInputs,
    options?: ContextCallOptions,
  ) => Promise<R>;
  /** Streams the responses of a decoupled model, one at a time. Leaving the loop cancels the call. */
  readonly stream: <R extends object = CallOutputs>(
    modelName: string,
    inputs: CallInputs,
    options?: ContextCallOptions,
  ) => AsyncGenerator<R, void, void>;
}

export interface TensorCallOptions extends ContextCallOptions {
  readonly requestedOutputs?: readonly string[];
  /** Whether the called model may be decoupled, that is, answer with any number of responses. @default true */
  readonly decoupled?: boolean;
  /**
   * Asks the called model to stop when it aborts. A model that supports such a request ends by itself; any other call
   * is cancelled.
   */
  readonly stopSignal?: AbortSignal | undefined;
}

/** A response of a called model, or an error. Has neither when the model ends without another response. */
export interface TensorAnswer {
  readonly outcome: InferenceResponse | TritonError | undefined;
  readonly final: boolean;
}

/** Calls other models with tensors as they are, for backends whose models are not written in JavaScript. */
export interface TensorCaller {
  /**
   * Streams the responses and errors of a model, one at a time. Leaving the loop cancels the call.
   *
   * @throws TritonError UNAVAILABLE for a model that is not ready, UNSUPPORTED for a decoupled one where that is not
   * allowed, and errors with which a request is refused.
   */
  readonly callWithTensors: (
    modelName: string,
    inputs: ReadonlyMap<string, Tensor>,
    options: TensorCallOptions,
  ) => AsyncGenerator<TensorAnswer, void, void>;
}

/** The execution on whose behalf a model is called. */
export interface CallOrigin {
  readonly signal: AbortSignal;
  readonly deadline: number | undefined;
  /** Models that execute the caller's requests, the caller itself last. */
  readonly callers: readonly string[];
  /** Trace of the first of the caller's requests that is traced. */
  readonly trace: RequestTrace | undefined;
}

export type CallModels = (origin: CallOrigin) => ModelCaller & TensorCaller;

/**
 * Result of a plain callback of an iterative sequence model for a request that it wants to get again. The request joins
 * the next batch, until the callback returns its outputs.
 *
 * @example
 * ```ts
 * const inferFunc = (requests) =>
 *   requests.map((request) => (isDone(request) ? { text: textOf(request) } : RESCHEDULE));
 * ```
 */
export const RESCHEDULE = Symbol.for("tritonjs.reschedule");

const doneMark = Symbol.for("tritonjs.done");

/** Marks the end of a request of a stepwise callback. Made by {@link done}. */
export interface Done<T> {
  readonly [doneMark]: true;
  /** The last response. Undefined for an end without one. */
  readonly outputs: T | undefined;
}

/**
 * Result of one step for one request: a response, after which the request continues; `undefined` for no response yet;
 * its end, made with `done`; or an error, which ends it too.
 */
export type StepResult<O extends readonly TensorSpec[], N extends PropertyKey = never> =
  | CheckedOutputs<O, N>
  | Done<CheckedOutputs<O, N>>
  | Error
  | undefined;

/** Functions of a stepwise callback: the argument of {@link stepwise}. */
export interface StepwiseModel<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  S,
  N extends PropertyKey = never,
> {
  /**
   * Starts a request: makes the state that is kept for it from step to step. The tensors are those of one request,
   * without the batch axis. A slow `start` does not delay other requests. An error ends this request alone.
   *
   * `context` belongs to the request and stays valid: keep it to look at its `signal` or to call other models. On the
   * main thread `start` runs in the asynchronous context of the code that sent the request.
   */
  start(inputs: InputsOf<I>, context: InferContext): S | Promise<S>;
  /**
   * Runs one step for all active requests. It returns one result for each state, in the same order, with tensors
   * without the batch axis. An error ends all active requests. A request whose client reads too slowly is left out
   * until the client has caught up.
   */
  step(
    active: readonly S[],
    instance: InstanceInfo,
  ): readonly StepResult<O, N>[] | Promise<readonly StepResult<O, N>[]>;
  /** Called when a request is over, for whatever reason. Release the state that is kept for it here. */
  end?(state: S): void;
}

/**
 * Makes a callback for continuous (iteration-level) batching. Requests run together step by step, each for as many
 * steps as it needs. Between two steps new requests join, and requests that are done, cancelled or failed leave. A
 * short request therefore never waits for a long one. At most `maxBatchSize` requests are active in an instance at a
 * time. Others wait in the queue.
 *
 * ```
 * step      1    2    3    4    5
 * request A [a]  [a]  [a]done
 * request B      [b]  [b]  [b]done     joins before step 2
 * request C                [c]  [c]    joins when A has left, if there is room for two
 * ```
 *
 * The model is decoupled, and its requests have one row. A module for worker threads exports the callback as default
 * and is bound with `config: { stepwise: true }`.
 *
 * @example
 * ```ts
 * const inferFunc = stepwise({
 *   start: ({ prompt }) => ({ tokens: tokenize(prompt) }),
 *   step: (active) => {
 *     const next = net.nextTokens(active.map(({ tokens }) => tokens)); // one pass for all
 *     return active.map(({ tokens }, i) => {
 *       tokens.push(next[i]);
 *       const outputs = { token: [next[i]] };
 *       return next[i] === END ? done() : outputs;
 *     });
 *   },
 * });
 * ```
 */
export function stepwise<
  const I extends readonly TensorSpec[],
  const O extends readonly TensorSpec[],
  S,
  N extends PropertyKey = never,
>(model: StepwiseModel<I, O, S, N>): StyledInferFunc<I, O> {
  const callback = (): never => {
    throw new TypeError("cannot call a stepwise callback directly: pass it to bind");
  };
  Object.defineProperty(callback, callableStyle, { value: "stepwise" });
  Object.defineProperty(callback, stepwiseModel, { value: model });
  return callback as StyledInferFunc<I, O>;
}

const stepwiseModel = Symbol.for("tritonjs.stepwiseModel");

export type AnyStepwiseModel = StepwiseModel<[], [], unknown>;

/** Problem of a module whose stepwise callback is bound without `config.stepwise`. */
export const STEPWISE_IS_TOLD = "the module's callback is made with stepwise(): set config.stepwise";

/** Problem of a module that is bound with `config.stepwise` but has another kind of callback. */
export const STEPWISE_IS_MISSING =
  "config.stepwise is set, but the module's callback is not made with stepwise()";

export function stepwiseModelOf(callback: object): AnyStepwiseModel {
  return (callback as { [stepwiseModel]: AnyStepwiseModel })[stepwiseModel];
}

/**
 * Ends a request of a stepwise callback.
 *
 * @param outputs the last response, if there is one
 */
export function done<T = never>(outputs?: T): Done<T> {
  return { [doneMark]: true, outputs };
}

export function isDone(result: unknown): result is Done<unknown> {
  return typeof result === "object" && result !== null && doneMark in result;
}
