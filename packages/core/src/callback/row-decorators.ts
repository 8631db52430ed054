import {
  contiguousElements,
  type Elements,
  type ElementsOf,
  errorFor,
  fromConfigDataType,
  type InputOf,
  isHalfArray,
  type ModelConfig,
  type NdArrayOf,
  ndArrayLike,
  type Shape,
  type seenAs,
  type TensorSpec,
  type TypedArray,
  tensorFromValue,
  toNdArray,
} from "@tritonjs/protocol";
import type { NdArray } from "ndarray";
import ndarray from "ndarray";
import { compareBytes, hexOf } from "#host";
import { batchSizeError, outputsByName } from "../request/inference-response.js";
import { getOrAdd } from "../system/collections.js";
import { TRITON_CONTEXT } from "./batch-decorators.js";
import {
  type DecoratesMethod,
  type DecoratorArguments,
  decorate,
  type MethodDecoratorContext,
} from "./decorate.js";
import {
  type AnyTensorFunc,
  type DecoratedTensorFunc,
  type InferContext,
  isGenerator,
  type TensorFunc,
} from "./infer-func.js";

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
type FirstValues<I extends readonly TensorSpec[], K extends string, Squeezed extends boolean> = {
  readonly [P in keyof I]: I[P] extends { readonly name: K }
    ? I[P] & { readonly [seenAs]: Squeezed extends true ? FirstOf<I[P]> : NdArrayOf<I[P]> }
    : I[P];
};

/** Result of `firstValue`: wraps a function of tensors, or decorates a method. */
export interface FirstValue<K extends string, Squeezed extends boolean> extends DecoratesMethod {
  <
    const I extends readonly TensorSpec[],
    const O extends readonly TensorSpec[],
    N extends PropertyKey = never,
  >(
    fn: AnyTensorFunc<FirstValues<I, K, Squeezed>, O, N>,
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
  return element instanceof Uint8Array ? `'${new TextDecoder().decode(element)}'` : String(element);
}

function notEqual(key: string, values: NdArray): string {
  const { elements: data } = flat(values);
  const elements = Array.from(comparable(data).slice(0, MAX_SHOWN), elementText);
  const shown = `[${elements.join(", ")}${values.size > MAX_SHOWN ? ", ..." : ""}]`;
  return (
    `The values on the '${key}' input are not equal. To proceed, either disable strict mode in @firstValue wrapper ` +
    `or ensure that the values always are consistent. The current values of '${key}' are ${shown}.`
  );
}

/** Outputs of one group of rows, by name. */
export type GroupOutputs = Readonly<Record<string, NdArray>>;

/** Brings the outputs of all groups to the same shape, except for the number of rows. */
export type GroupPadFunction = (groups: readonly GroupOutputs[]) => readonly GroupOutputs[];

/** Options of `groupByValues`. */
export interface GroupByValuesOptions {
  /** Pads outputs whose shapes differ between groups: `constantPadder()`. @default none: shapes must not differ */
  readonly padFn?: GroupPadFunction;
}

/** Result of `groupByValues`: wraps a function of tensors, or decorates a method. */
export interface GroupByValues extends DecoratesMethod {
  <
    const I extends readonly TensorSpec[],
    const O extends readonly TensorSpec[],
    N extends PropertyKey = never,
  >(
    fn: AnyTensorFunc<I, O, N>,
  ): DecoratedTensorFunc<I, O>;
}

/**
 * Groups the rows of a batch by the values of the inputs named `keys`, and calls the callback once for each group. The
 * outputs are returned in the order of the rows. Place it inside `batch`.
 *
 * @throws Error around `batch`, and around a generator function.
 * @example
 * ```ts
 * const inferFunc = batch(
 *   groupByValues("temperature", { padFn: constantPadder(0) })(({ tokens, temperature }) => ({
 *     tokens: generate(tokens, temperature.data[0]), // [rows, -1]: as long as the longest of the group
 *   })),
 * );
 * ```
 */
export function groupByValues(...keysAndOptions: readonly (string | GroupByValuesOptions)[]): GroupByValues {
  const keys = keysAndOptions.filter((key) => typeof key === "string");
  const options = keysAndOptions.find((one) => typeof one === "object");
  return ((...given: DecoratorArguments) =>
    decorate({ name: "groupByValues", keys }, given, (wrapped) => {
      const fn = wrapped as TensorFunc<[], []>;
      if (isGenerator(fn))
        throw new Error("The @groupByValues decorator cannot be used with a generator function.");
      return function (this: unknown, inputs: InputArrays, inferContext: InferContext) {
        const groups = groupRows(inputs, keys);
        if (groups.length <= 1) return fn.call(this, inputs, inferContext);
        return runGroups(
          (part) => fn.call(this, part, inferContext),
          inputs,
          groups,
          inferContext,
          options?.padFn,
        );
      };
    })) as GroupByValues;
}

/** Indices of the rows of each group, ordered by the first row of the group. */
function groupRows(inputs: InputArrays, keys: readonly string[]): number[][] {
  const rows = Object.entries(inputs).find(([name]) => name !== TRITON_CONTEXT)?.[1].shape[0] ?? 0;
  const groups = new Map<string, number[]>();
  for (let row = 0; row < rows; row++) {
    // A missing optional input is missing in all rows.
    const key = keys.map((name) => (inputs[name] === undefined ? "" : rowKey(inputs[name], row))).join("|");
    getOrAdd(groups, key, () => []).push(row);
  }
  return [...groups.values()];
}

async function runGroups(
  run: (inputs: InputArrays) => unknown,
  inputs: InputArrays,
  groups: readonly (readonly number[])[],
  { modelConfig }: InferContext,
  padFn: GroupPadFunction | undefined,
): Promise<unknown> {
  let outputs: readonly GroupOutputs[] = [];
  for (const rows of groups) {
    const entries = Object.entries(inputs).map(([name, values]) => [
      name,
      name === TRITON_CONTEXT ? values : takeRows(values, rows),
    ]);
    const value = await run(Object.fromEntries(entries) as InputArrays);
    outputs = [...outputs, outputArrays(value, modelConfig, rows.length)];
  }
  if (padFn !== undefined) outputs = padFn(outputs);
  const merged: Record<string, NdArray> = {};
  for (const name of Object.keys(outputs[0] ?? {})) {
    const parts = outputs.map((group) => group[name]);
    if (parts.some((part) => part === undefined)) {
      throw errorFor(
        "INVALID_OUTPUT",
        `output '${name}' is missing from some groups of @groupByValues: return it for all of them`,
      );
    }
    assertAlike(name, parts as NdArray[]);
    merged[name] = mergeRows(parts as NdArray[], groups);
  }
  return merged;
}

function assertAlike(name: string, parts: readonly NdArray[]): void {
  const shapes = [...new Set(parts.map((part) => `[${part.shape.slice(1).join()}]`))];
  if (shapes.length === 1) return;
  throw errorFor(
    "INVALID_OUTPUT",
    `output '${name}' has rows of different shapes ${shapes.join(" and ")} in the groups of @groupByValues; ` +
      "give a padFn that makes them equal",
  );
}

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
export function padBatch<
  const I extends readonly TensorSpec[],
  const O extends readonly TensorSpec[],
  N extends PropertyKey = never,
>(fn: AnyTensorFunc<I, O, N>): DecoratedTensorFunc<I, O>;
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

/**
 * Makes a `padFn` for `groupByValues`. Along each axis but the first, every output is filled up at the end to its
 * longest size in any group.
 *
 * @param padValue value of the added elements; a bigint for 64-bit integers. BYTES get empty elements. @default 0
 * @throws Error from the padder when an output has different types in different groups.
 */
export function constantPadder(padValue: number | bigint = 0): GroupPadFunction {
  return (groups) => {
    const shapes = longest(groups);
    return groups.map((group) =>
      Object.fromEntries(
        Object.entries(group).map(([name, values]) => [name, padded(values, shapes.get(name)!, padValue)]),
      ),
    );
  };
}

/** The smallest row shape that has room for the rows of every group, by output. */
function longest(groups: readonly GroupOutputs[]): Map<string, number[]> {
  const shapes = new Map<string, number[]>();
  const kinds = new Map<string, unknown>();
  for (const [name, values] of groups.flatMap((group) => Object.entries(group))) {
    const shape = values.shape.slice(1);
    const known = shapes.get(name);
    if (known === undefined) {
      shapes.set(name, shape);
      kinds.set(name, kindOf(values));
    } else if (kinds.get(name) !== kindOf(values)) {
      throw new Error("All input arrays for given input name must have the same dtype.");
    } else {
      shapes.set(
        name,
        shape.map((dim, axis) => Math.max(dim, known[axis] ?? 0)),
      );
    }
  }
  return shapes;
}

function kindOf({ data }: NdArray): unknown {
  return Object.getPrototypeOf(data);
}

function padded(values: NdArray, rowShape: readonly number[], padValue: number | bigint): NdArray {
  const shape = [values.shape[0]!, ...rowShape];
  const size = shape.reduce((product, dim) => product * dim, 1);
  const elements = emptyLike(values.data, size);
  if (Array.isArray(elements)) elements.fill(new Uint8Array());
  else if (isHalfArray(elements)) for (let i = 0; i < size; i++) elements.set(i, Number(padValue));
  else fill(elements, isBig(elements) ? BigInt(padValue) : Number(padValue));
  const out = ndarray(elements as Float32Array, shape);
  const index = values.shape.map(() => 0);
  for (let i = 0; i < values.size; i++) {
    out.set(...index, values.get(...index));
    for (let axis = index.length - 1; axis >= 0 && ++index[axis]! === values.shape[axis]; axis--)
      index[axis] = 0;
  }
  return out;
}

function fill(elements: { fill(value: number | bigint): unknown }, value: number | bigint): void {
  elements.fill(value);
}

function isBig(elements: ArrayLike<unknown>): boolean {
  return elements instanceof BigInt64Array || elements instanceof BigUint64Array;
}

/** ndarrays by name, each with the batch as its first axis. */
type InputArrays = Readonly<Record<string, NdArray>>;

type List = unknown[] | TypedArray;

function rowOf(values: NdArray, row: number): NdArray {
  return values.pick(row, ...values.shape.slice(1).map(() => null));
}

function sameRows(values: NdArray): boolean {
  const { elements: given, perRow } = flat(values);
  const elements = comparable(given);
  for (let i = perRow; i < elements.length; i++) {
    if (!sameElement(elements[i], elements[i - perRow])) return false;
  }
  return true;
}

/** The elements as values that compare: 0 and -0 of FP16 have different bits. */
function comparable(elements: List): List {
  return isHalfArray(elements) ? elements.toFloat32() : elements;
}

function sameElement(a: unknown, b: unknown): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b) === 0;
  return a === b || (Number.isNaN(a) && Number.isNaN(b));
}

/** Key of a row: rows of equal bytes have the same key, and different rows have different keys. */
function rowKey(values: NdArray, row: number): string {
  const { elements, perRow } = flat(values);
  const part = elements.slice(row * perRow, (row + 1) * perRow);
  if (!Array.isArray(part)) return hex(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  return part.map((element) => hex(element as Uint8Array)).join();
}

function hex(bytes: Uint8Array): string {
  return hexOf(bytes);
}

function takeRows(values: NdArray, rows: readonly number[]): NdArray {
  const { elements, perRow } = flat(values);
  const taken = emptyLike(elements, rows.length * perRow);
  for (const [i, row] of rows.entries()) copy(taken, i * perRow, elements, row * perRow, perRow);
  return arrayLike(values, taken, [rows.length, ...values.shape.slice(1)]);
}

/** Merges arrays of equal row shapes: row `i` of `parts[p]` becomes row `rows[p][i]`. */
function mergeRows(parts: readonly NdArray[], rows: readonly (readonly number[])[]): NdArray {
  const first = flat(parts[0]!);
  const count = rows.reduce((sum, part) => sum + part.length, 0);
  const merged = emptyLike(first.elements, count * first.perRow);
  for (const [p, part] of parts.entries()) {
    const { elements, perRow } = flat(part);
    for (const [i, row] of rows[p]!.entries()) copy(merged, row * perRow, elements, i * perRow, perRow);
  }
  return arrayLike(parts[0]!, merged, [count, ...parts[0]!.shape.slice(1)]);
}

function arrayLike(values: NdArray, elements: List, shape: readonly number[]): NdArray {
  return ndArrayLike(values as NdArray<Elements>, elements as Elements, shape) as NdArray;
}

/** The elements of an array in row-major order, and the number of elements per row. */
function flat(values: NdArray): { readonly elements: List; readonly perRow: number } {
  const perRow = values.shape.slice(1).reduce((product, dim) => product * dim, 1);
  return { elements: contiguousElements(values as NdArray<Elements>), perRow };
}

/** Makes an array of the same kind. A subclass of Uint8Array, such as Buffer, may not support `new`. */
function emptyLike(elements: object, length: number): List {
  if (Array.isArray(elements)) return new Array<unknown>(length);
  if (elements instanceof Uint8Array) return new Uint8Array(length);
  return new (elements.constructor as Float32ArrayConstructor)(length);
}

function copy(to: { [index: number]: unknown }, at: number, from: List, start: number, count: number): void {
  for (let i = 0; i < count; i++) to[at + i] = from[start + i];
}

/**
 * Converts the result of a function of tensors to ndarrays by name, for a decorator that continues to work with it.
 *
 * @param rows number of rows that each output must have
 * @throws TritonError INTERNAL for outputs that the model does not have, and for another number of rows.
 */
function outputArrays(value: unknown, config: ModelConfig, rows: number): Record<string, NdArray> {
  const named = outputsByName(
    config.name,
    value,
    config.output.map(({ name }) => name),
  );
  if (typeof named !== "object" || named === null) {
    throw errorFor(
      "INVALID_OUTPUT",
      `model '${config.name}': Unsupported output type ${named === null ? "null" : typeof named}.`,
    );
  }
  const arrays: Record<string, NdArray> = {};
  const wrong = new Map<string, Shape>();
  for (const [name, given] of Object.entries(named)) {
    const output = config.output.find((one) => one.name === name);
    if (output === undefined) {
      throw errorFor(
        "INVALID_OUTPUT",
        `Returned output \`${name}\` is not defined in model config for model \`${config.name}\`.`,
      );
    }
    const tensor = tensorFromValue(given, {
      what: `output '${name}' of model '${config.name}'`,
      datatype: fromConfigDataType(output.dataType)!,
      shape: [rows, ...output.dims],
    });
    if (tensor.shape[0] !== rows) wrong.set(name, tensor.shape);
    arrays[name] = toNdArray(tensor, "output", name, config.name) as NdArray;
  }
  if (wrong.size > 0) throw batchSizeError(config.name, wrong, rows);
  return arrays;
}
