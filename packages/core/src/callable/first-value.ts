import type { ElementsOf, InputOf, NdArrayOf, seenAs, TensorSpec } from "@tritonjs/protocol";
import type { NdArray } from "ndarray";

import { type DecoratesMethod, type DecoratorArguments, decorate } from "./decorate.js";
import type { InferContext } from "./infer-context.js";
import type { AnyTensorFunc, DecoratedTensorFunc } from "./infer-func.js";
import { type InputArrays, rowOf, sameRows } from "./rows.js";

import { TRITON_CONTEXT } from "./triton-context.js";

/** Options of `firstValue`. */
export interface FirstValueOptions {
  /** Whether a value of one element becomes a scalar. @default true */
  readonly squeezeSingleValues?: boolean;
  /** Whether the values of all rows must be equal. @default true */
  readonly strict?: boolean;
}

type ScalarOf<S extends TensorSpec> = ElementsOf<S["dtype"]>[number];

/**
 * Type of the first row as the callback sees it: a scalar if only one element is possible, an ndarray if there must be
 * more.
 */
type FirstOf<S extends TensorSpec> = S["shape"][number] extends 1
  ? ScalarOf<S>
  : number extends S["shape"][number]
    ? ScalarOf<S> | InputOf<S>
    : -1 extends S["shape"][number]
      ? ScalarOf<S> | InputOf<S>
      : InputOf<S>;

/** Specifications in which a callback sees only the first row of the inputs named `K`. */
export type FirstValues<I extends readonly TensorSpec[], K extends string, Squeezed extends boolean> = {
  readonly [P in keyof I]: I[P] extends { readonly name: K }
    ? I[P] & { readonly [seenAs]: Squeezed extends true ? FirstOf<I[P]> : NdArrayOf<I[P]> }
    : I[P];
};

/** Result of `firstValue`: wraps a function of tensors, or decorates a method. */
export interface FirstValue<K extends string, Squeezed extends boolean> extends DecoratesMethod {
  <const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
    fn: AnyTensorFunc<FirstValues<I, K, Squeezed>, O>,
  ): DecoratedTensorFunc<I, O>;
}

/**
 * Gives the callback one value of some inputs instead of one value per row, for model parameters that clients send as
 * tensors. Place it inside `batch`. Inside `groupByValues`, the values of all rows are equal. A missing optional input
 * stays missing.
 *
 * @throws Error for the name `tritonContext`. The callback throws when the values are not equal.
 * @example
 * ```ts
 * const inferFunc = batch(
 *   groupByValues("temperature")(
 *     firstValue("temperature")(({ text, temperature }) => ({ answer: ask(text, temperature) })), // temperature: number
 *   ),
 * );
 * ```
 */
export function firstValue<const K extends string>(...keys: readonly K[]): FirstValue<K, true>;
export function firstValue<const K extends string, const P extends FirstValueOptions>(
  ...keysAndOptions: readonly [...keys: readonly K[], options: P]
): FirstValue<K, P extends { readonly squeezeSingleValues: false } ? false : true>;
export function firstValue(...given: readonly (string | FirstValueOptions)[]): unknown {
  const keys = given.filter((key) => typeof key === "string");
  const { squeezeSingleValues = true, strict = true } = (given.find((one) => typeof one === "object") ??
    {}) as FirstValueOptions;
  if (keys.includes(TRITON_CONTEXT)) {
    throw new Error(
      `The keys ${TRITON_CONTEXT} are not allowed as keys for @firstValue wrapper. ` +
        `The set of not allowed keys are ${TRITON_CONTEXT}`,
    );
  }
  return (...given: DecoratorArguments) =>
    decorate(
      { name: "firstValue", keys },
      given,
      (fn) =>
        function (this: unknown, inputs: InputArrays, inferContext: InferContext) {
          const seen: Record<string, unknown> = { ...inputs };
          for (const key of keys) {
            const values = inputs[key];
            if (values === undefined) continue;
            if (strict && !sameRows(values)) throw new Error(notEqual(key, values));
            const first = rowOf(values, 0);
            seen[key] =
              squeezeSingleValues && first.size === 1 ? first.get(...first.shape.map(() => 0)) : first;
          }
          return fn.call(this, seen as never, inferContext as never);
        },
    );
}

const MAX_SHOWN = 16;

function elementText(element: unknown): string {
  return element instanceof Uint8Array ? `'${Buffer.from(element).toString()}'` : String(element);
}

function notEqual(key: string, values: NdArray): string {
  const data = values.data as ArrayLike<unknown>;
  const elements = Array.from({ length: Math.min(values.size, MAX_SHOWN) }, (_, i) => elementText(data[i]));
  const shown = `[${elements.join(", ")}${values.size > MAX_SHOWN ? ", ..." : ""}]`;
  return (
    `The values on the '${key}' input are not equal. To proceed, either disable strict mode in @firstValue wrapper ` +
    `or ensure that the values always are consistent. The current values of '${key}' are ${shown}.`
  );
}
