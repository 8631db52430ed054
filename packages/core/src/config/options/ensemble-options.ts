import { keyList } from "../schema/key-list.js";
/** One model of an ensemble, as `bindEnsemble` takes it. */
export interface EnsembleStep {
  readonly modelName: string;
  /** @default the highest version that is ready */
  readonly modelVersion?: number;
  /** For each input of the model the tensor of the ensemble that it gets. */
  readonly inputMap: Readonly<Record<string, string>>;
  /** For outputs of the model the tensor of the ensemble that each becomes. */
  readonly outputMap: Readonly<Record<string, string>>;
}

/** How an ensemble is served. */
export interface EnsembleOptions {
  /** Whether tensors have a leading batch axis. @default true */
  readonly batching?: boolean;
  /** Most rows in one request; no more than any of its members takes. @default 4 */
  readonly maxBatchSize?: number;
  /** Whether equal requests are answered from the cache of `new Triton({ responseCache })`. @default false */
  readonly responseCache?: boolean;
  /**
   * Most requests that one step may have under way, over all requests of the ensemble. A decoupled model waits
   * while a step after it has that many. 0 for any number. @default 0
   */
  readonly maxInflightRequests?: number;
  /** Free text, shown in the configuration. */
  readonly parameters?: Readonly<Record<string, string>>;
}

/** Names of the options, to tell a misspelt one from a known one. */
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
