import type { DataType, TensorSpec, TensorValue } from "@tritonjs/protocol";

import { type DecoratesMethod, type DecoratorArguments, decorate } from "./decorate.js";
import type { InferFunc, StyledInferFunc } from "./infer-func.js";

/** Specifications in which the inputs named `K` are always present. */
export type Filled<I extends readonly TensorSpec[], K extends string> = {
  readonly [P in keyof I]: I[P] extends { readonly name: K }
    ? Omit<I[P], "optional"> & { readonly optional: false }
    : I[P];
};

/** Result of `fillOptionals`: wraps a callback, or decorates a method. */
export interface FillOptionals<K extends string> extends DecoratesMethod {
  <const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    fn: InferFunc<Filled<I, K>, O>,
  ): StyledInferFunc<I, O>;
}

/**
 * Fills optional inputs that a request lacks with a default value, for each of its rows. Place it outermost, so that
 * the decorators inside get requests with the same inputs.
 *
 * @param defaults ndarrays, typed arrays or nested arrays without the batch axis; `bind` refuses defaults that do not
 * fit their input
 * @example
 * ```ts
 * const inferFunc = fillOptionals({ temperature: [0.7] })(
 *   batch(({ text, temperature }) => ({ answer: ask(text, temperature) })), // temperature: [rows, 1], always there
 * );
 * ```
 */
export function fillOptionals<const K extends string>(
  defaults: Readonly<Record<K, TensorValue<DataType>>>,
): FillOptionals<K> {
  return ((...given: DecoratorArguments) =>
    decorate({ name: "fillOptionals", defaults }, given)) as FillOptionals<K>;
}
