import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import type { InferFunc, TensorFunc } from "../callable/infer-func.js";
import type { ModelOptions } from "../config/options/model-options.js";

import type { Backend } from "../instance/backend.js";
import type { EvictionListener } from "../request/sequence-info.js";

/** What computes a model: one function, one for each instance, a module to run in workers, or a backend. */
export type InferFuncOption<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> =
  | InferFunc<I, O>
  | readonly InferFunc<I, O>[]
  | URL
  | Backend;

/** What `bind` takes. */
export interface BindOptions<I extends readonly TensorSpec[], O extends readonly TensorSpec[]> {
  /** Letters, digits, `.`, `_` and `-`. */
  readonly modelName: string;
  /** @default 1 */
  readonly modelVersion?: number;
  readonly inferFunc: InferFuncOption<I, O>;
  /** Inputs without the batch axis. A backend may know them by itself. */
  readonly inputs?: I;
  /** Outputs without the batch axis. A backend may know them by itself. */
  readonly outputs?: O;
  readonly config?: ModelOptions;
  /**
   * Fields of Triton's own model configuration, in camelCase, for what `config` has no word for. They win over
   * what follows from the other options; `input` and `output` may stand here instead of `inputs` and `outputs`.
   */
  readonly modelConfig?: Partial<ModelConfig>;
  /**
   * Whether callbacks have to return ndarrays of the declared data type and shape. Otherwise typed arrays and nested arrays
   * will do as well, and are converted; names, shapes and data types are checked either way.
   * @default false
   */
  readonly strict?: boolean;
  /**
   * Initial states of sequences, in their wire form, by the names that `initial_state.data_file` has in `modelConfig`.
   * @default files of these paths
   */
  readonly stateFiles?: Readonly<Record<string, Uint8Array>>;
  /**
   * Told of each sequence that is over without its END (idle, restarted, given up), once the callback has seen its
   * last request: time to let go of what is kept for it.
   */
  readonly onSequenceEvict?: EvictionListener;
}

/**
 * What `bind` takes for a method decorated with `@batch` or `@sample`: a decorator cannot change the type of its
 * method, so the method still looks like what it was written as.
 */
export interface BindMethodOptions<I extends readonly TensorSpec[], O extends readonly TensorSpec[]>
  extends Omit<BindOptions<I, O>, "inferFunc"> {
  readonly inferFunc: TensorFunc<I, O>;
}

/** Any binding, its types forgotten. */
export type AnyBindOptions = BindOptions<readonly TensorSpec[], readonly TensorSpec[]>;
