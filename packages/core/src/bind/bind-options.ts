import type {
  AllOrNoNames,
  InputsOf,
  InputValuesOf,
  ModelConfig,
  NamedInputs,
  NamedOutputs,
  OutputList,
  OutputsOf,
  ResultOf,
  TensorSpec,
  TensorSpecs,
} from "@tritonjs/protocol";
import type {
  Answer,
  AnyInferFunc,
  InferContext,
  InferFuncResult,
  InferRequest,
  StyledInferFunc,
} from "../callback/infer-func.js";
import type { TritonModels } from "../callback/triton-models.js";
import type { EnsembleOptions, EnsembleStep } from "../config/ensemble.js";
import type { ModelOptions } from "../config/model-options.js";
import type { Backend, TypedBackend } from "../instance/backend.js";
import type { EvictionListener } from "../request-info.js";

/**
 * A function that computes a model, as `bind` takes it.
 *
 * @typeParam N names that the outputs of a plain function have, which the compiler infers
 */
export type BoundFunc<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  N extends PropertyKey = never,
> = StyledInferFunc<I, O> | BoundPlainFunc<I, O, N>;

/** The code of a model: a function, one function for each instance, a module to run in workers, or a backend. */
export type InferFuncOption<I extends TensorSpecs, O extends TensorSpecs, N extends PropertyKey = never> =
  | BoundFunc<NamedInputs<I>, NamedOutputs<O>, N>
  | readonly BoundFunc<NamedInputs<I>, NamedOutputs<O>, N>[]
  | URL
  | Backend
  | TypedBackend<I & readonly TensorSpec[], O & readonly TensorSpec[]>;

/** Options of `bind` besides the code. */
interface ModelBindOptions<I extends TensorSpecs, O extends TensorSpecs> {
  /** Name of the model: letters, digits, `.`, `_` and `-`. */
  readonly modelName: string;
  /** Version of the model. @default 1 */
  readonly modelVersion?: number;
  /**
   * Inputs without the batch axis. Not needed for a backend that knows its inputs. If none has a name, they are INPUT_1,
   * INPUT_2 and so on.
   */
  readonly inputs?: I & AllOrNoNames<I>;
  /**
   * Outputs without the batch axis. Not needed for a backend that knows its outputs. If none has a name, they are
   * OUTPUT_1, OUTPUT_2 and so on.
   */
  readonly outputs?: O & AllOrNoNames<O>;
  readonly config?: ModelOptions;
  /**
   * Fields of Triton's own model configuration, in camelCase, for settings that `config` does not cover. They override
   * values that follow from the other options. `input` and `output` may be given here instead of `inputs` and
   * `outputs`.
   */
  readonly modelConfig?: Partial<ModelConfig>;
  /**
   * Whether callbacks must return ndarrays of the declared data type and shape. If false, typed arrays and nested
   * arrays are accepted too, and are converted. Names, shapes and data types are checked in both cases.
   * @default false
   */
  readonly strict?: boolean;
  /**
   * True for functions that use their inputs no more once they have answered, except in the answer itself. The memory of
   * requests of 64 KiB and more is then freed with the answer, instead of by a garbage collection.
   * @default false: the functions may keep their inputs
   */
  readonly releasesInputs?: boolean;
  /**
   * Initial states of sequences, in their wire form. The keys are the values of `initial_state.data_file` in
   * `modelConfig`.
   * @default the files at these paths
   */
  readonly stateFiles?: Readonly<Record<string, Uint8Array>>;
  /**
   * Called for each sequence that is over without its END (idle, restarted, cancelled), after the callback has seen its
   * last request. Release the state that is kept for the sequence here.
   */
  readonly onSequenceEvict?: EvictionListener;
}

/** Options of `bind`. */
export interface BindOptions<I extends TensorSpecs, O extends TensorSpecs, F = InferFuncOption<I, O>>
  extends ModelBindOptions<I, O> {
  readonly inferFunc: F;
}

/**
 * Options of `bind` for a method decorated with `@batch` or `@sample`. A decorator cannot change the type of its
 * method, so the method keeps the type that it was written with: with the parameter `A` and the result `R`.
 *
 * The compiler reports what is wrong with a function by these options, because the overload of `bind` that takes them is
 * the last one. With fewer than four overloads, TypeScript 6 would report all of them.
 */
export interface BindMethodOptions<I extends TensorSpecs, O extends TensorSpecs, A = unknown, R = unknown>
  extends ModelBindOptions<I, O> {
  readonly inferFunc: (
    inputs: A,
    context: InferContext,
  ) => ExpectedAnswer<A, R, NamedInputs<I>, NamedOutputs<O>>;
}

/** Options of any binding, without the types of its tensors. */
export interface AnyBindOptions extends ModelBindOptions<readonly TensorSpec[], readonly TensorSpec[]> {
  readonly inferFunc: AnyInferFunc | readonly AnyInferFunc[] | URL | Backend;
}

/** Options of a bound model that may change while it serves. Options that are left out stay. */
export type RebindOptions = Partial<
  Pick<AnyBindOptions, "inferFunc" | "config" | "modelConfig" | "strict" | "onSequenceEvict">
>;

/**
 * Options of `bindEnsemble`.
 *
 * @example
 * ```ts
 * const options = {
 *   modelName: "classify",
 *   inputs: [{ name: "image", dtype: "BYTES", shape: [1] }],
 *   outputs: [{ name: "classes", dtype: "FP32", shape: [1000] }],
 *   steps: [
 *     { modelName: "decode", inputMap: { jpeg: "image" }, outputMap: { pixels: "pixels" } },
 *     { modelName: "resnet", inputMap: { data: "pixels" }, outputMap: { prob: "classes" } },
 *   ],
 * } as const;
 * ```
 */
export interface BindEnsembleOptions<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  /** Name of the ensemble: letters, digits, `.`, `_` and `-`. */
  readonly modelName: string;
  /** Version of the ensemble. @default 1 */
  readonly modelVersion?: number;
  /** Inputs of the ensemble, without the batch axis. */
  readonly inputs?: I;
  /** Outputs of the ensemble, without the batch axis. */
  readonly outputs?: O;
  /** The models that requests pass through. A step runs as soon as its inputs exist, in whatever order. */
  readonly steps?: readonly EnsembleStep[];
  readonly config?: EnsembleOptions;
  /** Fields of Triton's own model configuration, in camelCase. They override the other options. */
  readonly modelConfig?: Partial<ModelConfig>;
}

/*
 * Types with which the compiler answers in one sentence when a function of tensors is bound without `batch` or `sample`.
 */

/** The sentence. It is the type of whatever the program cannot have, so that the compiler shows it. */
type ForgottenWrapper = "did you mean batch(fn) or sample(fn)?";

/**
 * The requests that a plain callback gets. The inputs of the model are not members of the list, so their names have the
 * sentence as their type.
 */
type RequestList<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> = readonly InferRequest<
  I,
  O
>[] & {
  readonly [N in Exclude<I[number]["name"], keyof (readonly unknown[])>]: ForgottenWrapper;
};

/** Results of a plain callback: a list with one for each request, or nothing if it answers through the senders. */
type PlainAnswer<O extends readonly TensorSpec[], N extends PropertyKey> =
  | Answer<readonly (InferFuncResult<O, N> | undefined)[]>
  | Promise<void>
  | void;

type BoundPlainFunc<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  N extends PropertyKey,
> = (requests: RequestList<I, O>, context: InferContext) => PlainAnswer<O, N>;

/**
 * The result that a function with the parameter `A` and the result `R` has to return: a list if it takes requests, outputs if it
 * takes the tensors of the model. Otherwise a sentence, which nothing fits. `R` itself if it is right.
 */
type ExpectedAnswer<
  A,
  R,
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
> = A extends readonly unknown[]
  ? [R] extends [Answer<readonly unknown[]> | Promise<void> | void]
    ? R & PlainAnswer<O, ResultNames<R>>
    : ForgottenWrapper
  : InputsOf<I> extends A
    ? R & Answer<OutputsOf<O> | OutputList<NoInfer<O>>>
    : "the parameter of the function does not fit the inputs of the model";

/** Names of the outputs in the result of a plain callback. */
type ResultNames<R> = R extends Answer<readonly (infer E)[]> ? keyof E : never;

interface TypedModel {
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
}

/** Inputs of a model by its name. `Untyped` for a model that `TritonModels` does not list. */
export type InputsOfModel<M extends string, Untyped> = M extends keyof TritonModels
  ? TritonModels[M] extends TypedModel
    ? InputValuesOf<TritonModels[M]["inputs"]>
    : Untyped
  : Untyped;

/** Outputs of a model by its name. `Untyped` for a model that `TritonModels` does not list. */
export type OutputsOfModel<M extends string, Untyped> = M extends keyof TritonModels
  ? TritonModels[M] extends TypedModel
    ? ResultOf<TritonModels[M]["outputs"]>
    : Untyped
  : Untyped;

/** Inputs of a bound model: those that were given, otherwise those that `TritonModels` lists for its name. */
export type BoundInputs<M extends string, I extends TensorSpecs> = readonly TensorSpec[] extends I
  ? M extends keyof TritonModels
    ? TritonModels[M] extends TypedModel
      ? TritonModels[M]["inputs"]
      : NamedInputs<I>
    : NamedInputs<I>
  : NamedInputs<I>;

/** Outputs of a bound model: those that were given, otherwise those that `TritonModels` lists for its name. */
export type BoundOutputs<M extends string, O extends TensorSpecs> = readonly TensorSpec[] extends O
  ? M extends keyof TritonModels
    ? TritonModels[M] extends TypedModel
      ? TritonModels[M]["outputs"]
      : NamedOutputs<O>
    : NamedOutputs<O>
  : NamedOutputs<O>;
