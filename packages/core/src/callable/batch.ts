import type { TensorSpec } from "@tritonjs/protocol";
import { type DecoratorArguments, decorate, type MethodDecoratorContext } from "./decorate.js";
import type { AnyTensorFunc, StyledInferFunc } from "./infer-func.js";

/**
 * Makes a callback that gets the rows of all requests of a batch at once. For each input it gets one ndarray whose
 * first axis is the batch. It returns outputs with as many rows. Works as a function and as a method decorator.
 *
 * @example
 * ```ts
 * const inferFunc = batch(({ x }) => ({ y: affine(x) })); // x: NdArray<Float32Array>, shape [rows, 2]
 *
 * class Model {
 *   @batch
 *   run({ x }: { x: NdArray<Float32Array> }) { return { y: this.affine(x) }; }
 * }
 * triton.bind({ inferFunc: new Model().run, ... });
 * ```
 */
export function batch<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  fn: AnyTensorFunc<I, O>,
): StyledInferFunc<I, O>;
export function batch<F extends (...args: never[]) => unknown>(method: F, context: MethodDecoratorContext): F;
export function batch<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function batch(...given: DecoratorArguments): unknown {
  return decorate({ name: "batch" }, given);
}
