import type { InputsOf, OutputList, OutputsOf, TensorSpec } from "@tritonjs/protocol";
import type { RequestInfo } from "../request/request-info.js";
import type { InferContext, RequestScope } from "./infer-context.js";
import type { RESCHEDULE } from "./reschedule.js";

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
 * Result of a plain callback for one request: its outputs, an error for this request alone, or `RESCHEDULE` to get it
 * again.
 */
export type InferFuncResult<O extends readonly TensorSpec[]> = OutputsOf<O> | Error | typeof RESCHEDULE;

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
 * Argument of `batch` and `sample`: a function from one ndarray per input to the outputs. For a decoupled model it is a
 * generator, which yields the outputs of each response.
 */
export type TensorFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> = (
  inputs: InputsOf<I>,
  context: InferContext,
) => Answer<OutputsOf<O> | OutputList<NoInfer<O>>>;

/**
 * How a callback takes its requests: all rows at once, the tensors of one request, the list of requests, or step by
 * step while requests join and leave.
 */
export type CallableStyle = "batch" | "sample" | "requests" | "stepwise";

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
export type AnyTensorFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> =
  | TensorFunc<I, O>
  | DecoratedTensorFunc<I, O>;

declare const tensorFunc: unique symbol;

/** A function that computes a model. */
export type InferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> =
  | StyledInferFunc<I, O>
  | PlainInferFunc<I, O>;

/** A callback of any model, without the types of its tensors. */
export type AnyInferFunc = InferFunc<readonly TensorSpec[], readonly TensorSpec[]>;

/** The way in which `fn` takes its requests. */
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
