import type { ModelConfig } from "@tritonjs/protocol";
import type { InferContext, InstanceDevice, InstanceInfo } from "../callable/infer-context.js";
import type { CallbackExecution } from "./executor.js";
import { toRequestInfo } from "./request-view.js";

/**
 * Context of a callback: its arguments besides the tensors. Created for each batch; rarely used properties are created
 * on first access.
 */
export class CallbackContext implements InferContext {
  readonly modelName: string;
  readonly modelVersion: number;
  readonly modelConfig: ModelConfig;
  readonly instanceName: string;
  readonly instanceIndex: number;
  readonly device: InstanceDevice;
  readonly #execution: CallbackExecution;
  #requests: InferContext["requests"] | undefined = undefined;

  constructor(info: InstanceInfo, execution: CallbackExecution) {
    this.modelName = info.modelName;
    this.modelVersion = info.modelVersion;
    this.modelConfig = info.modelConfig;
    this.instanceName = info.instanceName;
    this.instanceIndex = info.instanceIndex;
    this.device = info.device;
    this.#execution = execution;
  }

  get requests(): InferContext["requests"] {
    this.#requests ??= this.#execution.requests.map(toRequestInfo);
    return this.#requests;
  }

  get signal(): AbortSignal {
    return this.#execution.signal;
  }

  /** A separate function, which needs no `this`. */
  get infer(): InferContext["infer"] {
    return (...call) => this.#execution.models.infer(...call);
  }

  get stream(): InferContext["stream"] {
    return (...call) => this.#execution.models.stream(...call);
  }
}
