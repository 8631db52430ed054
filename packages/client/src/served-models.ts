import type {
  ArrayOf,
  DataType,
  GivenElementsOf,
  Nested,
  RequestSequence,
  ScalarOf,
  servedTensors,
  Tensor,
  TensorSpec,
} from "@tritonjs/protocol";
import type { Data, NdArray } from "ndarray";

/*
 * Types of clients that know the models of a server: from the handles of a program in the same repository, or from the
 * file that `tritonjs types` writes. Nothing here exists at run time.
 */

/**
 * The types of one model, as `tritonjs types` writes them. `unknown` for `decoupled` and `sequence` means that the server
 * does not tell.
 */
export interface ServedModelTypes {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  /** Whether a request has any number of responses. @default false */
  readonly decoupled?: unknown;
  /** Whether each request belongs to a sequence. @default false */
  readonly sequence?: unknown;
}

/** A model of which nothing is known: it takes and returns tensors of any kind. */
type AnyModel = {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly decoupled: unknown;
};

interface Handle {
  readonly [servedTensors]?: {
    readonly inputs: readonly TensorSpec[];
    readonly outputs: readonly TensorSpec[];
  };
  readonly name: string;
}

/** Names of models: those of handles, and the keys of models that are written as types. */
export type NameOfModel<Models> = Models extends readonly Handle[]
  ? Models[number]["name"]
  : { [K in keyof Models]: NameOf<Models[K], K> }[keyof Models] & string;

type NameOf<T, K> = T extends Handle ? (string extends T["name"] ? K : T["name"]) : K;

/** The types of the model with a name. */
export type ModelNamed<Models, N extends string> = Models extends readonly Handle[]
  ? Served<Extract<Models[number], { readonly name: N }>>
  : N extends keyof Models
    ? Models[N] extends Handle
      ? string extends Models[N]["name"]
        ? Served<Models[N]>
        : ModelWithName<Models, N>
      : Served<Models[N]>
    : ModelWithName<Models, N>;

/** The types of the handle with a name, whatever its key is. */
type ModelWithName<Models, N extends string> = Served<
  { [K in keyof Models]: NameOf<Models[K], K> extends N ? Models[K] : never }[keyof Models]
>;

type Served<T> = [T] extends [never]
  ? AnyModel
  : T extends ServedModelTypes
    ? T
    : T extends Handle
      ? NonNullable<T[typeof servedTensors]> & { readonly decoupled: unknown }
      : AnyModel;

type Optional<S extends TensorSpec> = S extends { readonly optional: true } ? S["name"] : never;
type Required<S extends TensorSpec> = S extends { readonly optional: true } ? never : S["name"];
type Named<S extends TensorSpec, N extends string> = Extract<S, { readonly name: N }>;
type Sent<S extends TensorSpec> = S extends { readonly batchInput: object } ? never : S;

/**
 * Nested arrays with as many levels as there are dimensions, or a list of typed arrays with one for each entry of the
 * first dimension. Their lengths are checked when the call is made.
 */
type Levels<T, E, Rank extends number> = Rank extends 0
  ? T
  : Rank extends 1
    ? readonly T[]
    :
        | readonly E[]
        | (Rank extends 2
            ? readonly (readonly T[])[]
            : Rank extends 3
              ? readonly (readonly (readonly T[])[])[]
              : Rank extends 4
                ? readonly (readonly (readonly (readonly T[])[])[])[]
                : Nested<T>);

/** A value for a tensor of a data type and a rank: an ndarray, a typed array that fills it, or nested arrays. */
type Value<D extends DataType, Rank extends number> =
  | NdArray<Extract<GivenElementsOf<D>, Data>>
  | GivenElementsOf<D>
  | Levels<ScalarOf<D>, GivenElementsOf<D>, Rank>
  | Tensor
  // A list of the elements of BYTES gets the shape of the specification.
  | (D extends "BYTES" ? readonly ScalarOf<D>[] : never);

/** A single value, for a tensor that may have one element. */
type OneValue<S extends TensorSpec> = S["shape"][number] extends 1 | -1 ? ScalarOf<S["dtype"]> : never;

/** A rank with the batch axis. */
type WithBatch<Rank extends number> = number extends Rank ? number : [1, 2, 3, 4, 5, 6, 7, 8, 9][Rank];

/** Inputs of one sample. */
type SampleInputs<I extends readonly TensorSpec[]> = number extends I["length"]
  ? Readonly<Record<string, Value<DataType, number>>>
  : {
      readonly [N in Required<Sent<I[number]>>]: SampleValue<Named<I[number], N>>;
    } & {
      readonly [N in Optional<Sent<I[number]>>]?: SampleValue<Named<I[number], N>>;
    };

type SampleValue<S extends TensorSpec> = Value<S["dtype"], S["shape"]["length"]> | OneValue<S>;

/** Inputs of a batch of rows. */
type BatchInputs<I extends readonly TensorSpec[]> = number extends I["length"]
  ? Readonly<Record<string, Value<DataType, number>>>
  : {
      readonly [N in Required<Sent<I[number]>>]: BatchValue<Named<I[number], N>>;
    } & {
      readonly [N in Optional<Sent<I[number]>>]?: BatchValue<Named<I[number], N>>;
    };

type BatchValue<S extends TensorSpec> = Value<S["dtype"], WithBatch<S["shape"]["length"]>>;

/** Dimensions of an array: those that the model fixes as they are, others as numbers. */
type Dims<S extends readonly number[]> = { readonly [P in keyof S]: S[P] extends -1 ? number : S[P] };

/** An ndarray of a known shape. */
export type ShapedArray<D extends DataType, S extends readonly number[]> = ArrayOf<D> &
  (number extends S["length"] ? unknown : { readonly shape: S });

/** Outputs of one sample, without the batch axis. */
export type SampleOutputs<O extends readonly TensorSpec[]> = number extends O["length"]
  ? Readonly<Record<string, ArrayOf<DataType>>>
  : {
      readonly [N in O[number]["name"]]: ShapedArray<
        Named<O[number], N>["dtype"],
        Dims<Named<O[number], N>["shape"]>
      >;
    };

/** Outputs of a batch of rows. */
export type BatchOutputs<O extends readonly TensorSpec[]> = number extends O["length"]
  ? Readonly<Record<string, ArrayOf<DataType>>>
  : {
      readonly [N in O[number]["name"]]: ShapedArray<
        Named<O[number], N>["dtype"],
        readonly [batch: number, ...Dims<Named<O[number], N>["shape"]>]
      >;
    };

/** Names of the classes of an output: literals where the types have them. */
export type LabelOf<M extends ServedModelTypes, Output extends M["outputs"][number]["name"]> =
  Named<M["outputs"][number], Output> extends { readonly labels: infer L extends readonly string[] }
    ? L[number]
    : string;

/** One of the best classes of an output. */
export interface ClassScore<Label extends string = string> {
  readonly value: number;
  readonly index: number;
  /** Name of the class. Undefined if the server has no name for it. */
  readonly label: Label | undefined;
}

/** Options of a classification. */
export interface ClassifyOptions {
  /** Number of classes, the best first. @default 1 */
  readonly classes?: number;
}

/** Arguments after the inputs: a model with sequences needs to know the sequence of each request. */
type OptionsOf<M extends ServedModelTypes, Options> = M extends { readonly sequence: true }
  ? [options: Options & { readonly sequence: RequestSequence }]
  : [options?: Options];

/** Calls of a model with one response to each request. */
export interface AnsweringCalls<M extends ServedModelTypes, Options> {
  /**
   * Infers one sample. A model with a batch axis gets one row, and the results come without the axis.
   *
   * @throws TritonError as `ModelClient.inferSample`.
   */
  inferSample(
    inputs: SampleInputs<M["inputs"]>,
    ...options: OptionsOf<M, Options>
  ): Promise<SampleOutputs<M["outputs"]>>;
  /** Infers a batch of rows. @throws TritonError INVALID_ARG for a model without a batch axis, otherwise as `inferSample`. */
  inferBatch(
    inputs: BatchInputs<M["inputs"]>,
    ...options: OptionsOf<M, Options>
  ): Promise<BatchOutputs<M["outputs"]>>;
  /**
   * Infers one sample, and returns the best classes of an output by the values that it has for them.
   *
   * @throws TritonError as `inferSample`.
   */
  classify<const Output extends M["outputs"][number]["name"]>(
    output: Output,
    inputs: SampleInputs<M["inputs"]>,
    ...options: OptionsOf<M, Options & ClassifyOptions>
  ): Promise<ClassScore<LabelOf<M, Output>>[]>;
}

/** Calls of a decoupled model: a request has any number of responses. */
export interface StreamingCalls<M extends ServedModelTypes, Options> {
  /**
   * Infers one sample and yields its responses as the model makes them. Leaving the loop cancels the request.
   *
   * @throws TritonError as `DecoupledModelClient.inferSample` of gRPC. Over HTTP, UNKNOWN for an error of the model after
   * its first response.
   */
  streamSample(
    inputs: SampleInputs<M["inputs"]>,
    ...options: OptionsOf<M, Options>
  ): AsyncGenerator<SampleOutputs<M["outputs"]>, void, void>;
}

/** The calls that a model has, by what its types tell of it. */
export type ModelCalls<M extends ServedModelTypes, Options> = M extends { readonly decoupled: true }
  ? StreamingCalls<M, Options>
  : M extends { readonly decoupled: unknown }
    ? M extends { readonly decoupled: false }
      ? AnsweringCalls<M, Options>
      : AnsweringCalls<M, Options> & StreamingCalls<M, Options>
    : AnsweringCalls<M, Options>;

/**
 * A client of all models of a server, whose types are known.
 *
 * @typeParam Models the handles of a server in the same repository, or the interface that `tritonjs types` writes
 */
export interface ModelsClient<Models, Options, Server> extends AsyncDisposable {
  /** The client of the server, for calls that are not about the tensors of a model. */
  readonly server: Server;
  /**
   * The calls of a model. Each model is looked up once, with its first call.
   *
   * @param modelVersion version of the model. @default the version that the server picks
   */
  model<const N extends NameOfModel<Models>>(
    modelName: N,
    modelVersion?: string | number,
  ): ModelCalls<ModelNamed<Models, N>, Options>;
  /** Rejects further calls, cancels streams, and resolves when the inferences in flight have ended. */
  close(): Promise<void>;
}
