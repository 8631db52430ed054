import { keyList } from "../schema/key-list.js";
/** One step of an ensemble: a model and its connections. Part of the options of `bindEnsemble`. */
export interface EnsembleStep {
  readonly modelName: string;
  /** Version of the model. @default the highest version that is ready */
  readonly modelVersion?: number;
  /** Tensor of the ensemble that each input of the model gets, by input name. */
  readonly inputMap: Readonly<Record<string, string>>;
  /** Tensor of the ensemble that each output of the model becomes, by output name. */
  readonly outputMap: Readonly<Record<string, string>>;
}

/** How an ensemble is served. */
export interface EnsembleOptions {
  /** Whether tensors have a leading batch axis. @default true */
  readonly batching?: boolean;
  /** Largest number of rows in one request, at most that of any member. @default 4 */
  readonly maxBatchSize?: number;
  /** Whether equal requests are answered from the cache of `new Triton({ responseCache })`. @default false */
  readonly responseCache?: boolean;
  /**
   * Largest number of requests in flight in one step, over all requests of the ensemble. A decoupled model pauses while
   * a step after it has reached the limit. 0 for no limit. @default 0
   */
  readonly maxInflightRequests?: number;
  /** Free text, shown in the configuration. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** Names of the options, to detect misspelt ones. */
export const ENSEMBLE_OPTION_KEYS = keyList<EnsembleOptions>({
  batching: true,
  maxBatchSize: true,
  responseCache: true,
  maxInflightRequests: true,
  parameters: true,
});
/** Names of the fields of a step. */
export const ENSEMBLE_STEP_KEYS = keyList<EnsembleStep>({
  modelName: true,
  modelVersion: true,
  inputMap: true,
  outputMap: true,
});
