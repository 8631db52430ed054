import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import type { InferContext, InstanceDevice } from "../../callable/infer-context.js";
import type { Answer, AnyInferFunc, InferFuncResult, InferRequest } from "../../callable/infer-func.js";
import type { AutoCompleteConfig } from "../../config/complete/auto-complete-config.js";

import type { JsModelMetrics } from "./model-metrics.js";

/** The server's log, for a model. */
export interface JsModelLogger {
  error(message: string): void;
  warning(message: string): void;
  info(message: string): void;
  /** @param level from 1; the message is written if the server's verbose level is at least this. @default 1 */
  verbose(message: string, level?: number): void;
}

/** Loads and unloads models of the server's repository, for servers whose models are loaded explicitly. */
export interface JsModelControl {
  /**
   * @param given a configuration in JSON, and files by path, which replace those in the repository
   * @throws TritonError like `Triton.loadModel`
   */
  loadModel(
    name: string,
    given?: { readonly config?: string; readonly files?: ReadonlyMap<string, Uint8Array> },
  ): Promise<void>;
  /** @throws TritonError like `Triton.unloadModel` */
  unloadModel(name: string, given?: { readonly unloadDependents?: boolean }): Promise<void>;
  /** True if a model can be called. @param version the latest by default */
  isModelReady(name: string, version?: number): Promise<boolean>;
}

/** Arguments of `initialize`, when an instance starts. */
export interface JsModelArgs {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  /** Triton's name of the instance: `linear_0`. */
  readonly instanceName: string;
  /** Position of the instance among those of the model. */
  readonly instanceIndex: number;
  readonly device: InstanceDevice;
  /** Directory of the model in its repository; directory of the module for a model that was bound. */
  readonly modelDirectory: string;
  readonly logger: JsModelLogger;
  readonly metrics: JsModelMetrics;
  readonly models: JsModelControl;
}

type AnySpecs = readonly TensorSpec[];

/**
 * One instance of a JavaScript model. The class is the default export of its module, or its export `TritonJsModel`.
 *
 * @typeParam I inputs, for the types of `requests`
 * @typeParam O outputs, for the type of the results
 * @example
 * ```ts
 * export default class Scale implements JsModel {
 *   static autoCompleteConfig(config: AutoCompleteConfig) {
 *     config.addInput({ name: "x", dataType: "FP32", dims: [-1] });
 *     config.addOutput({ name: "y", dataType: "FP32", dims: [-1] });
 *     config.setMaxBatchSize(8);
 *   }
 *   initialize({ modelConfig, logger }: JsModelArgs) {
 *     this.factor = Number(modelConfig.parameters.factor?.stringValue ?? 1);
 *     logger.info(`scales by ${this.factor}`);
 *   }
 *   execute(requests) {
 *     return requests.map(({ inputs: { x } }) => ({ y: ndarray(x.data.map((v) => v * this.factor), x.shape) }));
 *   }
 * }
 * ```
 */
export interface JsModel<I extends AnySpecs = AnySpecs, O extends AnySpecs = AnySpecs> {
  /** Called once, before the first request. If it throws, the model is not loaded, and the error is the reason. */
  initialize?(args: JsModelArgs): void | Promise<void>;
  /**
   * Answers the requests of a batch. Returns a list with one result per request, in order: the outputs by name, an
   * `Error` for this request alone, or `RESCHEDULE`. A decoupled model yields such lists, or returns nothing and
   * answers through each request's `responseSender`. If it throws, all requests of the batch fail. May also be a field
   * with a callback made by `batch`, `sample` or `stepwise`.
   */
  execute:
    | ((
        requests: readonly InferRequest<I, O>[],
        context: InferContext,
      ) => Answer<readonly (InferFuncResult<O> | undefined)[]> | Promise<void> | void)
    | AnyInferFunc;
  /** Called once, after the last request, when the instance ends regularly. */
  finalize?(): void | Promise<void>;
}

/** The class of a JavaScript model. */
export interface JsModelClass {
  new (): JsModel;
  /** Completes the configuration of a model in a repository, before any instance is created. */
  autoCompleteConfig?(config: AutoCompleteConfig): void | Promise<void>;
}
