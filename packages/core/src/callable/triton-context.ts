import type { seenAs, TensorSpec } from "@tritonjs/protocol";
import { type DecoratorArguments, decorate, type MethodDecoratorContext } from "./decorate.js";
import type { InferContext } from "./infer-context.js";
import type { AnyTensorFunc, DecoratedTensorFunc, TensorFunc } from "./infer-func.js";

/** Type of the context among the inputs. */
export interface ContextSpec {
  readonly name: "tritonContext";
  readonly dtype: "BYTES";
  readonly shape: readonly [];
  readonly [seenAs]: InferContext;
}

/** Name of the context among the inputs. */
export const TRITON_CONTEXT = "tritonContext";

/**
 * Adds the context to the inputs, as `tritonContext`. A callback gets the same object as its second argument anyway.
 * Place it inside `batch` or `sample`.
 *
 * @example
 * ```ts
 * const inferFunc = batch(
 *   tritonContext(({ x, tritonContext }) => ({ y: scale(x, tritonContext.modelConfig.parameters.factor) })),
 * );
 * ```
 */
export function tritonContext<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  fn: AnyTensorFunc<readonly [...I, ContextSpec], O>,
): DecoratedTensorFunc<I, O>;
export function tritonContext<F extends (...args: never[]) => unknown>(
  method: F,
  context: MethodDecoratorContext,
): F;
export function tritonContext<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function tritonContext(...given: DecoratorArguments): unknown {
  return decorate(
    { name: "tritonContext" },
    given,
    (fn) =>
      function (this: unknown, inputs: object, inferContext) {
        const call = fn as TensorFunc<[], []>;
        return call.call(this, { ...inputs, [TRITON_CONTEXT]: inferContext }, inferContext);
      },
  );
}
