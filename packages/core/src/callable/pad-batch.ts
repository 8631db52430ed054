import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";

import { type DecoratorArguments, decorate, type MethodDecoratorContext } from "./decorate.js";
import type { InferContext } from "./infer-context.js";
import type { AnyTensorFunc, DecoratedTensorFunc, TensorFunc } from "./infer-func.js";
import { outputArrays } from "./output-arrays.js";
import { type InputArrays, takeRows } from "./rows.js";
import { TRITON_CONTEXT } from "./triton-context.js";

/**
 * Pads a batch to the next preferred batch size, or to the largest one, by repeating its last row. It is for models
 * that run best, or only, with certain sizes. The added rows are removed from the outputs. Place it inside `batch`.
 *
 * @example
 * ```ts
 * const inferFunc = batch(padBatch(({ x }) => ({ y: engine.run(x) }))); // x has 4 or 8 rows
 * const config = { maxBatchSize: 8, batcher: { preferredBatchSize: [4] } };
 * ```
 */
export function padBatch<const I extends readonly TensorSpec[], const O extends readonly TensorSpec[]>(
  fn: AnyTensorFunc<I, O>,
): DecoratedTensorFunc<I, O>;
export function padBatch<F extends (...args: never[]) => unknown>(
  method: F,
  context: MethodDecoratorContext,
): F;
export function padBatch<F extends (...args: never[]) => unknown>(
  target: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<F>,
): TypedPropertyDescriptor<F>;
export function padBatch(...given: DecoratorArguments): unknown {
  return decorate(
    { name: "padBatch" },
    given,
    (fn) =>
      function (this: unknown, inputs: InputArrays, inferContext: InferContext) {
        const call = (given: InputArrays) =>
          (fn as TensorFunc<[], []>).call(this, given, inferContext) as unknown;
        const arrays = Object.entries(inputs).filter(([name]) => name !== TRITON_CONTEXT);
        const rows = arrays[0]?.[1].shape[0] ?? 0;
        const size = paddedSize(inferContext.modelConfig, rows);
        if (rows === 0 || size === rows) return call(inputs);
        const order = Array.from({ length: size }, (_, row) => Math.min(row, rows - 1));
        const filled = arrays.map(([name, values]) => [name, takeRows(values, order)] as const);
        return cut(call({ ...inputs, ...Object.fromEntries(filled) }), inferContext.modelConfig, size, rows);
      },
  );
}

/** The smallest preferred or largest size that has room for `rows`. */
function paddedSize({ maxBatchSize, dynamicBatching }: ModelConfig, rows: number): number {
  const sizes = [...(dynamicBatching?.preferredBatchSize ?? []), maxBatchSize];
  return Math.min(...sizes.filter((size) => size >= rows), Math.max(rows, maxBatchSize));
}

/** Removes the added rows from a result: a value or a promise, of one response or of many. */
function cut(value: unknown, config: ModelConfig, size: number, rows: number): unknown {
  if (value instanceof Promise) return value.then((settled) => cut(settled, config, size, rows));
  if (isIterable(value)) return cutEach(value, config, size, rows);
  const order = Array.from({ length: rows }, (_, row) => row);
  const outputs = Object.entries(outputArrays(value, config, size));
  return Object.fromEntries(outputs.map(([name, values]) => [name, takeRows(values, order)]));
}

async function* cutEach(
  values: AsyncIterable<unknown> | Iterable<unknown>,
  config: ModelConfig,
  size: number,
  rows: number,
): AsyncGenerator<unknown> {
  for await (const value of values) yield cut(value, config, size, rows);
}

function isIterable(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Symbol.asyncIterator in value || Symbol.iterator in value;
}
