import type { InputsOf, OutputList, OutputsOf, TensorSpec } from "@tritonjs/protocol";
import type { InferContext } from "./infer-context.js";
import type { Answer, InferFuncResult, InferRequest } from "./infer-func.js";

/*
 * Types with which the compiler answers in one sentence when a function of tensors is bound without `batch` or `sample`.
 */

/** The sentence. It is the type of whatever the program cannot have, so that the compiler shows it. */
type ForgottenWrapper = "a plain function receives a list of requests; did you mean batch(fn) or sample(fn)?";

/**
 * The requests that a plain callback gets. The inputs of the model are not members of the list, so their names have the
 * sentence as their type.
 */
export type RequestList<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
> = readonly InferRequest<I, O>[] & {
  readonly [N in Exclude<I[number]["name"], keyof (readonly unknown[])>]: ForgottenWrapper;
};

/** Results of a plain callback: a list with one for each request, or nothing if it answers through the senders. */
type PlainAnswer<O extends readonly TensorSpec[]> =
  | Answer<readonly (InferFuncResult<O> | undefined)[]>
  | Promise<void>
  | void;

/** A plain callback as `bind` takes it. */
export type BoundPlainFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> = (
  requests: RequestList<I, O>,
  context: InferContext,
) => PlainAnswer<O>;

/**
 * What a function with the parameter `A` and the result `R` has to return: a list if it takes requests, outputs if it
 * takes the tensors of the model. Otherwise a sentence, which nothing fits.
 */
export type ExpectedAnswer<
  A,
  R,
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
> = A extends readonly unknown[]
  ? [R] extends [Answer<readonly unknown[]> | Promise<void> | void]
    ? PlainAnswer<O>
    : ForgottenWrapper
  : InputsOf<I> extends A
    ? Answer<OutputsOf<O> | OutputList<NoInfer<O>>>
    : "the parameter of the function does not fit the inputs of the model";
