import { inference } from "@tritonjs/grpc-messages";
import {
  type ModelConfig,
  type ModelMetadata,
  type ModelStatisticsReport,
  type ServerMetadata,
  TritonError,
} from "@tritonjs/protocol";
import { method } from "../carrier/grpc-calls.js";
import type { CallOptions, ModelCallOptions } from "../client-options.js";
import { GrpcEndpoint } from "./grpc-endpoint.js";

const {
  ServerLiveRequest,
  ServerLiveResponse,
  ServerReadyRequest,
  ServerReadyResponse,
  ModelReadyRequest,
  ModelReadyResponse,
  ServerMetadataRequest,
  ServerMetadataResponse,
  ModelMetadataRequest,
  ModelMetadataResponse,
  ModelConfigRequest,
  ModelConfigResponse,
  ModelStatisticsRequest,
  ModelStatisticsResponse,
} = inference;

const serverLive = method("ServerLive", "reads", ServerLiveRequest, ServerLiveResponse);
const serverReady = method("ServerReady", "reads", ServerReadyRequest, ServerReadyResponse);
const modelReady = method("ModelReady", "reads", ModelReadyRequest, ModelReadyResponse);
const serverMetadata = method("ServerMetadata", "reads", ServerMetadataRequest, ServerMetadataResponse);
const modelMetadata = method("ModelMetadata", "reads", ModelMetadataRequest, ModelMetadataResponse);
const modelConfig = method("ModelConfig", "reads", ModelConfigRequest, ModelConfigResponse);
const modelStatistics = method("ModelStatistics", "reads", ModelStatisticsRequest, ModelStatisticsResponse);

/** Calls about the server and its models: health, metadata, configurations and statistics. */
export abstract class ServerCalls extends GrpcEndpoint {
  /**
   * True when the server answers.
   *
   * @throws TritonError UNAVAILABLE when there is no connection.
   */
  async isServerLive(call: CallOptions = {}): Promise<boolean> {
    return (await this.calls.unary(serverLive, {}, call)).live;
  }

  /** True when all models are ready. */
  async isServerReady(call: CallOptions = {}): Promise<boolean> {
    return (await this.calls.unary(serverReady, {}, call)).ready;
  }

  /** True when the model can infer; false also for an unknown model. */
  async isModelReady(modelName: string, { modelVersion, ...call }: ModelCallOptions = {}): Promise<boolean> {
    const request = { name: modelName, version: versionText(modelVersion) };
    return (await this.calls.unary(modelReady, request, call)).ready;
  }

  /** Returns name, version and protocol extensions of the server. */
  async getServerMetadata(call: CallOptions = {}): Promise<ServerMetadata> {
    const { name, version, extensions } = await this.calls.unary(serverMetadata, {}, call);
    return { name, version, extensions };
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
  async getModelMetadata(
    modelName: string,
    { modelVersion, ...call }: ModelCallOptions = {},
  ): Promise<ModelMetadata> {
    const request = { name: modelName, version: versionText(modelVersion) };
    const { name, versions, platform, inputs, outputs } = await this.calls.unary(
      modelMetadata,
      request,
      call,
    );
    return {
      name,
      versions,
      platform,
      inputs: inputs.map(tensorMetadata),
      outputs: outputs.map(tensorMetadata),
    };
  }

  /** Returns the configuration of a model as in this library: Triton's fields in camelCase, enums by name. */
  async getModelConfig(
    modelName: string,
    { modelVersion, ...call }: ModelCallOptions = {},
  ): Promise<ModelConfig> {
    const request = { name: modelName, version: versionText(modelVersion) };
    const { config } = await this.calls.unary(modelConfig, request, call);
    if (config == null)
      throw new TritonError("INTERNAL", `the server sent no configuration of model '${modelName}'`, {
        reason: "INVALID_ANSWER",
      });
    const plain = inference.ModelConfig.toObject(config as inference.ModelConfig, {
      defaults: true,
      enums: String,
    });
    return withoutNulls(plain) as ModelConfig;
  }

  /** Returns the statistics of a model, or of all models that are ready. */
  async getInferenceStatistics(
    modelName = "",
    { modelVersion, ...call }: ModelCallOptions = {},
  ): Promise<ModelStatisticsReport[]> {
    const request = { name: modelName, version: versionText(modelVersion) };
    const { modelStats } = await this.calls.unary(modelStatistics, request, call);
    return modelStats as unknown as ModelStatisticsReport[];
  }
}

function versionText(version: string | number | undefined): string {
  return String(version ?? "");
}

function tensorMetadata({
  name,
  datatype,
  shape,
}: inference.ModelMetadataResponse.TensorMetadata.$Properties) {
  return { name: name ?? "", datatype: datatype ?? "", shape: (shape ?? []).map(Number) };
}

/** Removes members that are null, which are absent messages. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNulls(member)]));
}
