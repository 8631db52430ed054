import type { InferContext, ModelConfig, RequestInfo } from "@tritonjs/core";
import type { ExecutableRequest, Execution, ExecutorContext } from "@tritonjs/core/backend";

/**
 * Second argument of the callback of {@link textGenerator}: information about the request and its model, and calls of
 * other models. `signal` is aborted when the request is cancelled or out of time: pass it on to the engine.
 */
export interface TextGenerationContext extends InferContext {
  /** The request without its tensors: its id, parameters and priority. */
  readonly request: RequestInfo;
}

/** The context of one request. */
export class GenerationContext implements TextGenerationContext {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  readonly instanceName: string;
  readonly instanceIndex: number;
  readonly device: InferContext["device"];
  readonly #request: ExecutableRequest;
  readonly #execution: Execution;

  constructor({ info }: ExecutorContext, execution: Execution, request: ExecutableRequest) {
    this.modelName = info.modelName;
    this.modelVersion = info.modelVersion;
    this.modelConfig = info.modelConfig;
    this.instanceName = info.instanceName;
    this.instanceIndex = info.instanceIndex;
    this.device = info.device;
    this.#request = request;
    this.#execution = execution;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  get request(): RequestInfo {
    return this.#request;
  }

  get requests(): InferContext["requests"] {
    return [this.#request];
  }

  get infer(): InferContext["infer"] {
    return this.#execution.models.infer;
  }

  get stream(): InferContext["stream"] {
    return this.#execution.models.stream;
  }
}
