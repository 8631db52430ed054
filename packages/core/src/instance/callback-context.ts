import type { InferContext, InstanceDevice, InstanceInfo } from "../callable/infer-context.js";
import type { ModelConfig } from "../config/model-config.js";
import type { Execution } from "./executor.js";

/** What a callback is told besides its tensors. Made for each batch: what a callback seldom asks for is made when it does. */
export class CallbackContext implements InferContext {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  readonly instanceName: string;
  readonly instanceIndex: number;
  readonly device: InstanceDevice;
  readonly requests: InferContext["requests"];
  readonly #execution: Execution;

  constructor(info: InstanceInfo, execution: Execution) {
    this.modelName = info.modelName;
    this.modelVersion = info.modelVersion;
    this.modelConfig = info.modelConfig;
    this.instanceName = info.instanceName;
    this.instanceIndex = info.instanceIndex;
    this.device = info.device;
    this.requests = execution.requests;
    this.#execution = execution;
  }

  get signal(): AbortSignal {
    return this.#execution.signal;
  }

  /** A function of its own, which needs no `this`. */
  get infer(): InferContext["infer"] {
    return (...call) => this.#execution.models.infer(...call);
  }

  get stream(): InferContext["stream"] {
    return (...call) => this.#execution.models.stream(...call);
  }
}
