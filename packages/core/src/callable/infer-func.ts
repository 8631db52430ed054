import type { InputsOf, OutputList, OutputsOf, TensorSpec } from "@tritonjs/protocol";
import type { RequestInfo } from "../request/request-info.js";
import type { InferContext, RequestScope } from "./infer-context.js";
import type { RESCHEDULE } from "./reschedule.js";

/** Answers one request of a decoupled model, also after the callback has returned. */
export interface ResponseSender<O extends readonly TensorSpec[]> {
  /** False once the request is over: closed, or given up by its client. */
  readonly isOpen: boolean;
  /**
   * Sends a response, or an error; the request goes on unless it is `final`. Resolves when the client can take
   * more: who waits for it never fills memory with answers that nobody reads.
   */
  send(result: InferFuncResult<O>, options?: { readonly final?: boolean }): Promise<void>;
  /** Ends the request. Every sender has to be closed, or to send something final. */
  close(): void;
}

/** One request as a plain callback sees it. The tensors have the batch axis when the model has one. */
export interface InferRequest<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[] = readonly TensorSpec[],
> extends RequestInfo,
    RequestScope {
  readonly inputs: InputsOf<I>;
  /** Aborted when this request is given up. */
  readonly signal: AbortSignal;
  /** Answers the request; for decoupled models only. */
  readonly responseSender: ResponseSender<O>;
}

/**
 * What a plain callback returns for one request: its outputs, an error for this request alone, or `RESCHEDULE` to see
 * it again.
 */
export type InferFuncResult<O extends readonly TensorSpec[]> = OutputsOf<O> | Error | typeof RESCHEDULE;

/** A value now or later, or for decoupled models any number of them over time. */
export type Answer<T> = T | Promise<T> | AsyncIterable<T> | Iterable<T>;

/**
 * A plain callback: all requests of a batch in, as many results out, in the same order. For a decoupled model it
 * yields such lists, with `undefined` for a request that has no response in this step, or returns nothing and
 * answers through each request's `responseSender`.
 */
export type PlainInferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> = (
  requests: readonly InferRequest<I, O>[],
  context: InferContext,
) => Answer<readonly (InferFuncResult<O> | undefined)[]> | Promise<void> | void;

/**
 * What `batch` and `sample` take: one ndarray for each input in, the outputs out. For a decoupled model a
 * generator, which yields the outputs of each response.
 */
export type TensorFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> = (
  inputs: InputsOf<I>,
  context: InferContext,
) => Answer<OutputsOf<O> | OutputList<NoInfer<O>>>;

/**
 * How a callback wants its requests: all rows at once, one request's tensors, the list of requests, or step by step
 * with those that come and go meanwhile.
 */
export type CallableStyle = "batch" | "sample" | "requests" | "stepwise";

/** Marks functions with their style, also with decorators around them; shared between copies of the library and threads. */
export const callableStyle = Symbol.for("tritonjs.callableStyle");

/**
 * A callback made by `batch`, `sample`, or a decorator around them: opaque, for `bind` alone to call. The call
 * signature without parameters is there for inference: TypeScript looks at what stands next to a call that returns a
 * function before it looks into the call, and takes the parameters of a plain callback from the only signature that
 * has any.
 */
export interface StyledInferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  (): never;
  readonly [callableStyle]: CallableStyle;
  readonly [tensorFunc]?: TensorFunc<I, O>;
}

/**
 * A function of tensors with decorators around it (`firstValue`, `padBatch`, ...): opaque, for `batch` and `sample` to
 * take.
 */
export interface DecoratedTensorFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  (): never;
  readonly [tensorFunc]?: TensorFunc<I, O>;
}

/** What `batch`, `sample` and the decorators inside of them take. */
export type AnyTensorFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> =
  | TensorFunc<I, O>
  | DecoratedTensorFunc<I, O>;

declare const tensorFunc: unique symbol;

/** A function that computes a model. */
export type InferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> =
  | StyledInferFunc<I, O>
  | PlainInferFunc<I, O>;

/** A callback of any model, its types forgotten. */
export type AnyInferFunc = InferFunc<readonly TensorSpec[], readonly TensorSpec[]>;

/** How `fn` wants its requests. */
export function styleOf(fn: AnyInferFunc): CallableStyle {
  return (fn as Partial<StyledInferFunc<[], []>>)[callableStyle] ?? "requests";
}

/** Marks wrappers of generator functions. */
export const generates = Symbol.for("tritonjs.generates");

/** True for a generator function, also when it is wrapped by `batch` or `sample`. */
export function isGenerator(fn: unknown): boolean {
  if (typeof fn !== "function") return false;
  return (
    generates in fn || /^(Async)?GeneratorFunction$/.test(Object.prototype.toString.call(fn).slice(8, -1))
  );
}
