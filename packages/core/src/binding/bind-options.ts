import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import type { BoundPlainFunc, ExpectedAnswer } from "../callable/forgotten-wrapper.js";
import type { InferContext } from "../callable/infer-context.js";
import type { AnyInferFunc, StyledInferFunc } from "../callable/infer-func.js";
import type { ModelOptions } from "../config/options/model-options.js";

import type { Backend, TypedBackend } from "../instance/backend.js";
import type { EvictionListener } from "../request/sequence-info.js";

/** A function that computes a model, as `bind` takes it. */
type BoundFunc<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> =
  | StyledInferFunc<I, O>
  | BoundPlainFunc<I, O>;

/**
 * The code that computes a model: one function, one function for each instance, a module to run in workers, or a
 * backend.
 */
export type InferFuncOption<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> =
  | BoundFunc<I, O>
  | readonly BoundFunc<I, O>[]
  | URL
  | Backend
  | TypedBackend<I, O>;

/** Options of `bind` besides the code. */
export interface ModelBindOptions<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  /** Name of the model: letters, digits, `.`, `_` and `-`. */
  readonly modelName: string;
  /** Version of the model. @default 1 */
  readonly modelVersion?: number;
  /** Inputs without the batch axis. Not needed for a backend that knows its inputs. */
  readonly inputs?: I;
  /** Outputs without the batch axis. Not needed for a backend that knows its outputs. */
  readonly outputs?: O;
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
export interface BindOptions<I extends readonly TensorSpec[], O extends readonly TensorSpec[]>
  extends ModelBindOptions<I, O> {
  readonly inferFunc: InferFuncOption<I, O>;
}

/**
 * Options of `bind` for a method decorated with `@batch` or `@sample`. A decorator cannot change the type of its
 * method, so the method keeps the type that it was written with: with the parameter `A` and the result `R`.
 */
export interface BindMethodOptions<
  I extends readonly TensorSpec[],
  O extends readonly TensorSpec[],
  A = unknown,
  R = unknown,
> extends ModelBindOptions<I, O> {
  readonly inferFunc: (inputs: A, context: InferContext) => R & ExpectedAnswer<A, R, I, O>;
}

/** Options of any binding, without the types of its tensors. */
export interface AnyBindOptions extends ModelBindOptions<readonly TensorSpec[], readonly TensorSpec[]> {
  readonly inferFunc: AnyInferFunc | readonly AnyInferFunc[] | URL | Backend;
}
