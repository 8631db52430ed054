import type { TensorSpec } from "@tritonjs/protocol";
import { type DecoratorArguments, decorate, type MethodDecoratorContext } from "./decorate.js";
import type { InferFunc, StyledInferFunc } from "./infer-func.js";

/**
 * Splits a batch by the sets of inputs that its requests have, and calls the callback once for each set. The results
 * are returned in the order of the requests. Place it around `batch`, which needs requests with the same inputs.
 * Requests with different sets of inputs may then share a batch.
 *
 * @example
 * ```ts
 * const inferFunc = groupByKeys(batch(({ text, hint }) => ({ answer: ask(text, hint) }))); // hint: in all rows or in none
 * ```
 */
export function groupByKeys<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  fn: InferFunc<I, O>,
): StyledInferFunc<I, O>;
export function groupByKeys<F extends (...args: never[]) => unknown>(
  method: F,
  context: MethodDecoratorContext,
): F;
export function groupByKeys<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function groupByKeys(...given: DecoratorArguments): unknown {
  return decorate({ name: "groupByKeys" }, given);
}
