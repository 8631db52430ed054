import type { ModelMetadata } from "@tritonjs/protocol";
import type { CallOptions, ModelCallOptions } from "../client-options.js";
import { modelPath } from "../paths.js";
import { HttpEndpoint } from "./http-endpoint.js";
import type { ModelConfigAnswer, ServerMetadataAnswer, StatisticsAnswer } from "./server-answers.js";

/** Calls about the server and its models: health, metadata, configurations and statistics. */
export abstract class ServerCalls extends HttpEndpoint {
  /**
   * True when the server answers.
   *
   * @throws TritonError UNAVAILABLE when there is no connection.
   */
  isServerLive(call: CallOptions = {}): Promise<boolean> {
    return this.probe("v2/health/live", call);
  }

  /** True when all models are ready. */
  isServerReady(call: CallOptions = {}): Promise<boolean> {
    return this.probe("v2/health/ready", call);
  }

  /** True when the model can infer; false also for an unknown model. */
  isModelReady(modelName: string, { modelVersion, ...call }: ModelCallOptions = {}): Promise<boolean> {
    return this.probe(modelPath(modelName, modelVersion, "ready"), call);
  }

  /** Returns name, version and protocol extensions of the server. */
  getServerMetadata(call: CallOptions = {}): Promise<ServerMetadataAnswer> {
    return this.get("v2", call);
  }

  /**
   * Returns versions, inputs and outputs of a model. If the model has a batch axis, shapes have it as a leading -1.
   *
   * @throws TritonError NOT_FOUND for an unknown model or version.
   * @example
   * ```ts
   * const { inputs } = await client.getModelMetadata("linear"); // [{ name: "x", datatype: "FP32", shape: [-1, 2] }]
   * ```
   */
  getModelMetadata(
    modelName: string,
    { modelVersion, ...call }: ModelCallOptions = {},
  ): Promise<ModelMetadata> {
    return this.get(modelPath(modelName, modelVersion, ""), call);
  }

  /** Returns the configuration of a model, with Triton's field names. */
  getModelConfig(
    modelName: string,
    { modelVersion, ...call }: ModelCallOptions = {},
  ): Promise<ModelConfigAnswer> {
    return this.get(modelPath(modelName, modelVersion, "config"), call);
  }

  /** Returns the statistics of a model, or of all models that are ready. */
  getInferenceStatistics(
    modelName = "",
    { modelVersion, ...call }: ModelCallOptions = {},
  ): Promise<StatisticsAnswer> {
    return this.get(modelName === "" ? "v2/models/stats" : modelPath(modelName, modelVersion, "stats"), call);
  }
}
