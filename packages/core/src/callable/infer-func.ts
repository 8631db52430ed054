import type { TensorSpec } from "../config/tensor-spec.js";
import type { InferContext, RequestInfo } from "./infer-context.js";
import type { InputsOf, OutputsOf } from "./tensors-of.js";

/** One request as a plain callback sees it. The tensors have the batch axis when the model has one. */
export interface InferRequest<I extends readonly TensorSpec[]> extends RequestInfo {
  readonly inputs: InputsOf<I>;
  /** Aborted when this request is given up. */
  readonly signal: AbortSignal;
}

/** What a plain callback returns for one request: its outputs, or an error for this request alone. */
export type InferResult<O extends readonly TensorSpec[]> = OutputsOf<O> | Error;

/** A plain callback: all requests of a batch in, as many results out, in the same order. */
export type PlainInferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> = (
  requests: readonly InferRequest<I>[],
  context: InferContext,
) => readonly InferResult<O>[] | Promise<readonly InferResult<O>[]>;

/** What `batch` and `sample` take: one ndarray for each input in, the outputs out. */
export type TensorFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> = (
  inputs: InputsOf<I>,
  context: InferContext,
) => OutputsOf<O> | Promise<OutputsOf<O>>;

/** How a callback wants its requests: all rows at once, one request's tensors, or the list of requests. */
export type CallableStyle = "batch" | "sample" | "requests";

/** Marks functions made by `batch` and `sample`; shared between copies of the library and between threads. */
export const callableStyle = Symbol.for("tritonjs.callableStyle");

/**
 * A callback made by `batch` or `sample`: opaque, for `bind` alone to call. The call signature without parameters
 * is there for inference: TypeScript looks at what stands next to a call that returns a function before it looks
 * into the call, and takes the parameters of a plain callback from the only signature that has any.
 */
export interface StyledInferFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  (): never;
  readonly [callableStyle]: "batch" | "sample";
  readonly [tensorFunc]?: TensorFunc<I, O>;
}

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
