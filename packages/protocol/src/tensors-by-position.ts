import type { NdArray } from "ndarray";
import type { DataType, ElementsOf } from "./data-types.js";
import { isNdArray } from "./nd-array.js";
import type { Nested, ScalarOf, TensorValue } from "./tensor-from-value.js";
import type { InferOptions, NamedInput, TensorSpec } from "./tensor-spec.js";
import { TritonError } from "./triton-error.js";

/*
 * Tensors by position, as PyTriton has them. Specifications without names get INPUT_1, INPUT_2, OUTPUT_1 and so on, and
 * calls take tensors in the order of the model's inputs.
 */

/**
 * One tensor of a model, whose name is its position: INPUT_1, INPUT_2, OUTPUT_1.
 *
 * @example
 * ```ts
 * const spec: UnnamedTensorSpec = { dtype: "INT64", shape: [-1] };
 * ```
 */
export interface UnnamedTensorSpec extends Omit<TensorSpec, "name"> {
  readonly name?: undefined;
}

/** The inputs or the outputs of a model: all have names, or none has one. */
export type TensorSpecs = readonly (TensorSpec | UnnamedTensorSpec)[];

/** A sentence of the compiler about tensors of which some have names and others do not. Any other list fits it. */
export type AllOrNoNames<S extends TensorSpecs> = S extends
  | readonly TensorSpec[]
  | readonly UnnamedTensorSpec[]
  ? unknown
  : "name all tensors or none of them";

type Direction = "INPUT" | "OUTPUT";

type WithName<S extends UnnamedTensorSpec, N extends string> = {
  readonly [P in keyof S | "name"]: P extends "name" ? N : S[P & keyof S];
} & { readonly name: N; readonly dtype: S["dtype"]; readonly shape: S["shape"] };

/** Specifications with the names of their positions. */
type NamedByPosition<
  S extends readonly unknown[],
  D extends Direction,
  Named extends readonly TensorSpec[] = [],
> = S extends readonly [infer First extends UnnamedTensorSpec, ...infer Rest]
  ? NamedByPosition<Rest, D, readonly [...Named, WithName<First, `${D}_${[...Named, 0]["length"] & number}`>]>
  : Named;

/** Specifications with names: those that were given, otherwise those of the positions. Nothing is inferred from it. */
type WithNames<S extends TensorSpecs, D extends Direction> = S extends infer N extends readonly TensorSpec[]
  ? N
  : number extends S["length"]
    ? readonly TensorSpec[]
    : NamedByPosition<S, D>;

/** Inputs with their names: those that were given, otherwise INPUT_1, INPUT_2 and so on. */
export type NamedInputs<I extends TensorSpecs> = WithNames<I, "INPUT">;

/** Outputs with their names: those that were given, otherwise OUTPUT_1, OUTPUT_2 and so on. */
export type NamedOutputs<O extends TensorSpecs> = WithNames<O, "OUTPUT">;

/** Gives specifications the names of their positions if none of them has a name. Others are returned as they are. */
export function nameByPosition(
  where: "inputs" | "outputs",
  specs: readonly Partial<TensorSpec>[],
): readonly Partial<TensorSpec>[] {
  const direction: Direction = where === "inputs" ? "INPUT" : "OUTPUT";
  return specs.some((spec) => spec === null || spec.name !== undefined)
    ? specs
    : specs.map((spec, i) => ({ ...spec, name: `${direction}_${i + 1}` }));
}

/** A value by position. An object, which an element of `BYTES` can be, is given in a list. */
type PositionedValue<D extends DataType> = D extends "BYTES"
  ? NdArray<ElementsOf<"BYTES">> | string | Uint8Array | readonly Nested<ScalarOf<"BYTES">>[]
  : TensorValue<D>;

/** Values of a call in the order of the inputs that clients send. Inputs at the end may be left out if they are optional. */
type ValuesByPosition<S extends readonly TensorSpec[]> = number extends S["length"]
  ? readonly (PositionedValue<DataType> | undefined)[]
  : S extends readonly [infer First extends TensorSpec, ...infer Rest extends readonly TensorSpec[]]
    ? First extends { readonly batchInput: object }
      ? ValuesByPosition<Rest>
      : First extends { readonly optional: true }
        ? readonly [PositionedValue<First["dtype"]>?, ...ValuesByPosition<Rest>]
        : readonly [PositionedValue<First["dtype"]>, ...ValuesByPosition<Rest>]
    : readonly [];

/** Arguments of a call by position: a value for each input, then the options, if there are any. */
export type CallByPosition<I extends readonly TensorSpec[], Options = InferOptions> =
  | ValuesByPosition<I>
  | readonly [...ValuesByPosition<I>, Options];

/** Arguments of a call, read. */
export interface ReadCall<Options> {
  /** Values by input name. Undefined for a call by position, and null or undefined if it is what the call was given. */
  readonly named: Readonly<Record<string, unknown>> | null | undefined;
  /** Values in the order of the model's inputs. */
  readonly positional: readonly unknown[];
  readonly options: Options | undefined;
}

const NO_VALUES: readonly unknown[] = Object.freeze([]);

/**
 * Reads the arguments of a call, before anything is known of the model: an object of values by name, or the values
 * themselves, and the options at the end.
 *
 * @throws TritonError INVALID_ARG for values by name that are followed by others.
 */
export function readCall<Options>(modelName: string, given: readonly unknown[]): ReadCall<Options> {
  const [first, second] = given;
  if (
    isRecord(first) ||
    given.length === 0 ||
    (given.length === 1 && (first === undefined || first === null))
  ) {
    if (given.length > 2 || (second !== undefined && !isRecord(second))) {
      throw mixed(modelName, `${describe(second)} after tensors by name`);
    }
    return { named: first as ReadCall<Options>["named"], positional: NO_VALUES, options: second as Options };
  }
  let count = given.length;
  const last = given[count - 1];
  const options = isRecord(last) ? (last as Options) : undefined;
  if (options !== undefined) count -= 1;
  return { named: undefined, positional: given.slice(0, count), options };
}

/**
 * The values of a call by input name.
 *
 * @throws TritonError INVALID_ARG for too many or too few values by position, and for a call that gives some by name.
 */
export function valuesByName<Options>(
  modelName: string,
  inputs: readonly NamedInput[],
  { named, positional, options }: ReadCall<Options>,
): Readonly<Record<string, unknown>> {
  if (positional.length === 0) {
    if (named != null) return named;
    const got = named === null ? "null" : typeof named;
    throw invalid(
      `inputs of model '${modelName}': expected an object with a value for each input, or tensors by position, got ${got}`,
    );
  }
  for (const { name } of inputs) {
    const value = (options as Readonly<Record<string, unknown>> | undefined)?.[name];
    // No option is an array, so that inputs may have the names of options.
    if (typeof value === "object" && value !== null && !isRecord(value)) {
      throw mixed(modelName, `'${name}' after tensors by position`);
    }
  }
  let count = positional.length;
  while (count > inputs.length && positional[count - 1] === undefined) count -= 1;
  const least = inputs.findLastIndex(({ optional }) => !optional) + 1;
  if (count > inputs.length || count < least) throw wrongCount(modelName, inputs, least, count);
  return Object.fromEntries(inputs.slice(0, count).map(({ name }, i) => [name, positional[i]]));
}

function wrongCount(
  modelName: string,
  inputs: readonly NamedInput[],
  least: number,
  got: number,
): TritonError {
  const most = inputs.length;
  const expected = least === most ? `${most}` : `${least} to ${most}`;
  const names = inputs.map(({ name }) => `'${name}'`).join(", ");
  return invalid(
    `model '${modelName}': expected ${expected} ${most === 1 ? "tensor" : "tensors"} by position (${names}), got ${got}`,
  );
}

function mixed(modelName: string, got: string): TritonError {
  return invalid(`model '${modelName}': expected all tensors by name or all by position, got ${got}`);
}

function describe(value: unknown): string {
  if (typeof value !== "object") return typeof value;
  return value === null ? "null" : Array.isArray(value) ? "an array" : value.constructor.name;
}

function invalid(message: string): TritonError {
  return new TritonError("INVALID_ARG", message, { reason: "INVALID_INPUT" });
}

/** True for an object that is not a tensor: values by name, or options. */
function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !ArrayBuffer.isView(value) &&
    !isNdArray(value)
  );
}
