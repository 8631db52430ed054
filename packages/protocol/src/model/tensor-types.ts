import type { NdArray } from "ndarray";
import type { BytesArray } from "../tensor/bytes-array.js";
import type { DataType, ElementsOf } from "../tensor/data-type.js";
import type { TensorValue } from "../tensor/from-value.js";
import type { TensorSpec } from "./tensor-spec.js";

type Optional<S extends TensorSpec> = S extends { readonly optional: true } ? S["name"] : never;
type Required<S extends TensorSpec> = S extends { readonly optional: true } ? never : S["name"];
type Named<S extends TensorSpec, N extends string> = Extract<S, { readonly name: N }>;

/** The ndarray type of a data type. That of `BYTES` also reads its elements as text and as JSON. */
export type ArrayOf<D extends DataType> = [D] extends ["BYTES"] ? BytesArray : NdArray<ElementsOf<D>>;

/** The ndarray type of one specification. */
export type NdArrayOf<S extends TensorSpec> = ArrayOf<S["dtype"]>;

/** Marks the specification of an input that a callback sees in a form other than an ndarray. */
export declare const seenAs: unique symbol;

/** Type in which a callback sees one input. */
export type InputOf<S extends TensorSpec> = S extends { readonly [seenAs]: infer V } ? V : NdArrayOf<S>;

/** Inputs of a callback: one ndarray for each input. Optional ones may be missing. */
export type InputsOf<I extends readonly TensorSpec[]> = {
  readonly [N in Required<I[number]>]: InputOf<Named<I[number], N>>;
} & {
  readonly [N in Optional<I[number]>]?: InputOf<Named<I[number], N>>;
};

/** Outputs of a callback: for each output an ndarray, a typed array that fills its shape, or nested arrays. */
export type OutputsOf<O extends readonly TensorSpec[]> = {
  readonly [N in O[number]["name"]]: TensorValue<Named<O[number], N>["dtype"]>;
};

/** Outputs of a callback as a list, in the order of the model's outputs. */
export type OutputList<O extends readonly TensorSpec[]> = {
  readonly [P in keyof O]: TensorValue<O[P]["dtype"]>;
};

/** Inputs that clients send. Computed inputs are left out. */
type Sent<S extends TensorSpec> = S extends { readonly batchInput: object } ? never : S;

/** Inputs of a call: for each input an ndarray, a typed array that fills its shape, or nested arrays. */
export type InputValuesOf<I extends readonly TensorSpec[]> = {
  readonly [N in Required<Sent<I[number]>>]: TensorValue<Named<I[number], N>["dtype"]>;
} & {
  readonly [N in Optional<Sent<I[number]>>]?: TensorValue<Named<I[number], N>["dtype"]>;
};

/** Result of a call: one ndarray for each output. */
export type ResultOf<O extends readonly TensorSpec[]> = {
  readonly [N in O[number]["name"]]: NdArrayOf<Named<O[number], N>>;
};
