import type { TensorSpec } from "@tritonjs/protocol";
import { type DecoratorArguments, decorate, type MethodDecoratorContext } from "./decorate.js";
import type { AnyTensorFunc, StyledInferFunc } from "./infer-func.js";

/** Problem of a model that has both a batch axis and a callback made with `sample`. */
export const SAMPLE_TAKES_ONE =
  "config.batching is true, but a callback made with sample() takes one request at a time: leave config.batching out";

/**
 * Makes a callback that gets the tensors of one request, for models without a batch axis. Works as a function and as a
 * method decorator.
 *
 * @example
 * ```ts
 * const inferFunc = sample(({ image }) => ({ boxes: detect(image) })); // image: the whole shape, as specified
 * ```
 */
export function sample<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  fn: AnyTensorFunc<I, O>,
): StyledInferFunc<I, O>;
export function sample<F extends (...args: never[]) => unknown>(
  method: F,
  context: MethodDecoratorContext,
): F;
export function sample<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function sample(...given: DecoratorArguments): unknown {
  return decorate({ name: "sample" }, given);
}
