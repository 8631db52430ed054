import type { NdArray } from "ndarray";
import type { ElementsOf } from "../tensor/data-type.js";
import type { TensorValue } from "../tensor/from-value.js";
import type { TensorSpec } from "./tensor-spec.js";

type Optional<S extends TensorSpec> = S extends { readonly optional: true } ? S["name"] : never;
type Required<S extends TensorSpec> = S extends { readonly optional: true } ? never : S["name"];
type Named<S extends TensorSpec, N extends string> = Extract<S, { readonly name: N }>;

/** The ndarray of one specification. */
export type NdArrayOf<S extends TensorSpec> = NdArray<ElementsOf<S["dtype"]>>;

/** Marks the specification of an input of which a callback sees something else than an ndarray. */
export declare const seenAs: unique symbol;

/** What a callback sees of one input. */
export type InputOf<S extends TensorSpec> = S extends { readonly [seenAs]: infer V } ? V : NdArrayOf<S>;

/** What a callback receives: one ndarray for each input, optional ones possibly missing. */
export type InputsOf<I extends readonly TensorSpec[]> = {
  readonly [N in Required<I[number]>]: InputOf<Named<I[number], N>>;
} & {
  readonly [N in Optional<I[number]>]?: InputOf<Named<I[number], N>>;
};

/** What a callback returns: for each output an ndarray, a typed array that fills its shape, or nested arrays. */
export type OutputsOf<O extends readonly TensorSpec[]> = {
  readonly [N in O[number]["name"]]: TensorValue<Named<O[number], N>["dtype"]>;
};

/** The same as a list, in the order of the model's outputs. */
export type OutputList<O extends readonly TensorSpec[]> = {
  readonly [P in keyof O]: TensorValue<O[P]["dtype"]>;
};

/** Inputs that clients send: those that are made of others are not among them. */
type Sent<S extends TensorSpec> = S extends { readonly batchInput: object } ? never : S;

/** What a caller gives: for each input an ndarray, a typed array that fills its shape, or nested arrays. */
export type InputValuesOf<I extends readonly TensorSpec[]> = {
  readonly [N in Required<Sent<I[number]>>]: TensorValue<Named<I[number], N>["dtype"]>;
} & {
  readonly [N in Optional<Sent<I[number]>>]?: TensorValue<Named<I[number], N>["dtype"]>;
};

/** What a caller gets: one ndarray for each output. */
export type ResultOf<O extends readonly TensorSpec[]> = {
  readonly [N in O[number]["name"]]: NdArrayOf<Named<O[number], N>>;
};
