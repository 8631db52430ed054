import {
  type ModelConfig,
  type ModelIndexEntry,
  type ModelMetadata,
  type ModelStatisticsReport,
  type ServerMetadata,
  TritonError,
} from "@tritonjs/protocol";
import { inference } from "@tritonjs/protocol/grpc";
import { isRepeatable, withSequenceHeader } from "../infer-request.js";
import type { InferResult } from "../infer-result.js";
import type { CudaRegion, SystemRegion } from "../options.js";
import type { CallOptions, ClientOptions, InferCall, ModelCallOptions } from "./client-options.js";
import { GrpcCalls, method } from "./grpc-calls.js";
import { decodeInferResponse, encodeInferRequest, type ResponseMessage } from "./infer-messages.js";
import {
  type StreamInferOptions,
  type StreamInferResponse,
  type StreamRequests,
  streamInfer,
} from "./stream-infer.js";

/** The base class of the client's calls: the server, and how to call it. */
abstract class GrpcEndpoint {
  protected readonly calls: GrpcCalls;
  protected readonly options: ClientOptions;

  /**
   * @param url address of the server: `localhost:8001`, `grpcs://example.org:443`; or several servers: a list of
   * addresses, or `dns://name:8001` for all addresses of a name
   * @throws TritonError INVALID_ARG for an invalid address or certificate.
   */
  constructor(url: string | readonly string[], options: ClientOptions = {}) {
    this.calls = new GrpcCalls(url, options);
    this.options = options;
  }

  /** Ends the calls in flight with CANCELLED. Later calls fail with UNAVAILABLE. */
  close(): void {
    this.calls.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

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
abstract class ServerCalls extends GrpcEndpoint {
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

const {
  RepositoryIndexRequest,
  RepositoryIndexResponse,
  RepositoryModelLoadRequest,
  RepositoryModelLoadResponse,
  RepositoryModelUnloadRequest,
  RepositoryModelUnloadResponse,
} = inference;

const index = method("RepositoryIndex", "reads", RepositoryIndexRequest, RepositoryIndexResponse);
const load = method(
  "RepositoryModelLoad",
  "changes",
  RepositoryModelLoadRequest,
  RepositoryModelLoadResponse,
);
const unload = method(
  "RepositoryModelUnload",
  "changes",
  RepositoryModelUnloadRequest,
  RepositoryModelUnloadResponse,
);

/** Options for loading a model. */
export interface LoadModelOptions extends CallOptions {
  /** Replaces the configuration in the repository: Triton's fields, as an object or as JSON. */
  readonly config?: string | object;
  /**
   * Replaces the files of the model's directory: contents by relative path, such as `1/model.onnx`. Requires `config`.
   */
  readonly files?: Readonly<Record<string, Uint8Array>>;
}

/** Calls of the model repository. */
abstract class RepositoryCalls extends ServerCalls {
  /** Returns the models of the repository; with `ready` only models that can infer. */
  async getModelRepositoryIndex({
    ready = false,
    ...call
  }: CallOptions & { ready?: boolean } = {}): Promise<ModelIndexEntry[]> {
    const { models } = await this.calls.unary(index, { ready }, call);
    return models.map(({ name, version, state, reason }) => ({
      name: name ?? "",
      ...(version && { version }),
      ...(state && { state }),
      ...(reason && { reason }),
    }));
  }

  /**
   * Loads or reloads a model, and resolves when it can infer. This may take longer than other calls: see `timeoutMs`.
   *
   * @example
   * ```ts
   * await client.loadModel("resnet", { config: { max_batch_size: 8 }, timeoutMs: 300_000 });
   * ```
   */
  async loadModel(modelName: string, { config, files = {}, ...call }: LoadModelOptions = {}): Promise<void> {
    const parameters: Record<string, inference.ModelRepositoryParameter.$Properties> = {};
    if (config !== undefined) {
      parameters.config = { stringParam: typeof config === "string" ? config : JSON.stringify(config) };
    }
    for (const [path, content] of Object.entries(files)) {
      parameters[path.startsWith("file:") ? path : `file:${path}`] = { bytesParam: content };
    }
    await this.calls.unary(load, { modelName, parameters }, call);
  }

  /** Unloads a model; with `unloadDependents` also the models that were loaded because of it. */
  async unloadModel(
    modelName: string,
    { unloadDependents = false, ...call }: CallOptions & { unloadDependents?: boolean } = {},
  ): Promise<void> {
    const parameters = { unload_dependents: { boolParam: unloadDependents } };
    await this.calls.unary(unload, { modelName, parameters }, call);
  }
}

const { TraceSettingRequest, TraceSettingResponse, LogSettingsRequest, LogSettingsResponse } = inference;

const readTrace = method("TraceSetting", "reads", TraceSettingRequest, TraceSettingResponse);
const changeTrace = method("TraceSetting", "changes", TraceSettingRequest, TraceSettingResponse);
const readLog = method("LogSettings", "reads", LogSettingsRequest, LogSettingsResponse);
const changeLog = method("LogSettings", "changes", LogSettingsRequest, LogSettingsResponse);

/** Options of calls about trace settings: of the server, or of one model. */
export interface TraceCallOptions extends CallOptions {
  /** @default the settings of the server */
  readonly modelName?: string;
}

/** Trace settings by name: all are lists of strings. */
export type ServerTraceSettings = Readonly<Record<string, readonly string[]>>;

/** New trace settings by name: null, or an empty list, undoes an earlier change. */
export type NewTraceSettings = Readonly<Record<string, string | number | readonly string[] | null>>;

/** Log settings by name. */
export type ServerLogSettings = Readonly<Record<string, string | number | boolean>>;

/** Calls of trace and log settings. */
abstract class SettingsCalls extends RepositoryCalls {
  /** Returns the trace settings of the server or of a model. */
  async getTraceSettings({ modelName = "", ...call }: TraceCallOptions = {}): Promise<ServerTraceSettings> {
    return traceSettings(await this.calls.unary(readTrace, { modelName }, call));
  }

  /**
   * Changes trace settings and returns all of them.
   *
   * @example
   * ```ts
   * await client.updateTraceSettings({ trace_level: ["TIMESTAMPS"], trace_rate: "100" }, { modelName: "linear" });
   * ```
   */
  async updateTraceSettings(
    settings: NewTraceSettings,
    { modelName = "", ...call }: TraceCallOptions = {},
  ): Promise<ServerTraceSettings> {
    const values = Object.entries(settings).map(([name, value]) => [name, { value: texts(value) }]);
    const request = { modelName, settings: Object.fromEntries(values) };
    return traceSettings(await this.calls.unary(changeTrace, request, call));
  }

  /** Returns the log settings. */
  async getLogSettings(call: CallOptions = {}): Promise<ServerLogSettings> {
    return logSettings(await this.calls.unary(readLog, {}, call));
  }

  /** Changes log settings and returns all of them. */
  async updateLogSettings(settings: ServerLogSettings, call: CallOptions = {}): Promise<ServerLogSettings> {
    const values = Object.entries(settings).map(([name, value]) => [name, logValue(value)]);
    return logSettings(await this.calls.unary(changeLog, { settings: Object.fromEntries(values) }, call));
  }
}

function texts(value: NewTraceSettings[string]): string[] {
  if (value === null) return [];
  return typeof value === "object" ? [...value] : [String(value)];
}

function traceSettings({ settings }: inference.TraceSettingResponse): ServerTraceSettings {
  return Object.fromEntries(Object.entries(settings).map(([name, { value }]) => [name, value ?? []]));
}

function logValue(value: string | number | boolean): inference.LogSettingsRequest.SettingValue.$Properties {
  if (typeof value === "boolean") return { boolParam: value };
  return typeof value === "number" ? { uint32Param: value } : { stringParam: value };
}

function logSettings({ settings }: inference.LogSettingsResponse): ServerLogSettings {
  return Object.fromEntries(
    Object.entries(settings).map(([name, { boolParam, uint32Param, stringParam }]) => [
      name,
      boolParam ?? uint32Param ?? stringParam ?? "",
    ]),
  );
}

const systemStatus = method(
  "SystemSharedMemoryStatus",
  "reads",
  inference.SystemSharedMemoryStatusRequest,
  inference.SystemSharedMemoryStatusResponse,
);
const systemRegister = method(
  "SystemSharedMemoryRegister",
  "changes",
  inference.SystemSharedMemoryRegisterRequest,
  inference.SystemSharedMemoryRegisterResponse,
);
const systemUnregister = method(
  "SystemSharedMemoryUnregister",
  "changes",
  inference.SystemSharedMemoryUnregisterRequest,
  inference.SystemSharedMemoryUnregisterResponse,
);
const cudaStatus = method(
  "CudaSharedMemoryStatus",
  "reads",
  inference.CudaSharedMemoryStatusRequest,
  inference.CudaSharedMemoryStatusResponse,
);
const cudaRegister = method(
  "CudaSharedMemoryRegister",
  "changes",
  inference.CudaSharedMemoryRegisterRequest,
  inference.CudaSharedMemoryRegisterResponse,
);
const cudaUnregister = method(
  "CudaSharedMemoryUnregister",
  "changes",
  inference.CudaSharedMemoryUnregisterRequest,
  inference.CudaSharedMemoryUnregisterResponse,
);

/** A registered region of the system's shared memory. */
export interface SystemRegionStatus extends Required<SystemRegion> {
  readonly name: string;
}

/** A registered region of CUDA shared memory. */
export interface CudaRegionStatus extends Omit<CudaRegion, "rawHandle"> {
  readonly name: string;
}

/**
 * Shared memory: a client on the server's machine names the place of its tensors instead of sending them. The empty
 * region name means all regions.
 */
abstract class SharedMemoryCalls extends SettingsCalls {
  /** Returns the registered regions, or one of them. */
  async getSystemSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<SystemRegionStatus[]> {
    const { regions } = await this.calls.unary(systemStatus, { name: regionName }, call);
    return Object.entries(regions).map(([name, { key, offset, byteSize }]) => ({
      name,
      key: key ?? "",
      offset: Number(offset ?? 0),
      byteSize: Number(byteSize ?? 0),
    }));
  }

  /**
   * Registers a region at the server under a name.
   *
   * @example
   * ```ts
   * await client.registerSystemSharedMemory("inputs", { key: "/my_inputs", byteSize: 64 });
   * ```
   */
  async registerSystemSharedMemory(
    regionName: string,
    { key, byteSize, offset = 0 }: SystemRegion,
    call: CallOptions = {},
  ): Promise<void> {
    await this.calls.unary(systemRegister, { name: regionName, key, byteSize, offset }, call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterSystemSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.calls.unary(systemUnregister, { name: regionName }, call);
  }

  /** Returns the registered regions, or one of them. */
  async getCudaSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<CudaRegionStatus[]> {
    const { regions } = await this.calls.unary(cudaStatus, { name: regionName }, call);
    return Object.entries(regions).map(([name, { deviceId, byteSize }]) => ({
      name,
      deviceId: Number(deviceId ?? 0),
      byteSize: Number(byteSize ?? 0),
    }));
  }

  /** Registers a region at the server under a name. */
  async registerCudaSharedMemory(
    regionName: string,
    { rawHandle, deviceId, byteSize }: CudaRegion,
    call: CallOptions = {},
  ): Promise<void> {
    const handle = typeof rawHandle === "string" ? Buffer.from(rawHandle, "base64") : rawHandle;
    await this.calls.unary(cudaRegister, { name: regionName, rawHandle: handle, deviceId, byteSize }, call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterCudaSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.calls.unary(cudaUnregister, { name: regionName }, call);
  }
}

const modelInfer = method("ModelInfer", "infers", inference.ModelInferRequest, inference.ModelInferResponse);

/**
 * A client of any server that speaks the v2 (KServe / Triton) protocol over gRPC, with the calls of Triton's Python
 * client.
 *
 * Failed calls reject with a `TritonError`:
 *
 * - with the server's text and the code of its status;
 * - with UNAVAILABLE when the server could not be reached or did not answer in time;
 * - with CANCELLED when `signal` aborted.
 *
 * @example
 * ```ts
 * const client = new InferenceServerClient("localhost:8001");
 * const result = await client.infer("linear", {
 *   inputs: { x: { datatype: "FP32", data: [[1, 2], [3, 4]] } },
 * });
 * result.array("y", "FP32").get(0, 0);
 * ```
 */
export class InferenceServerClient extends SharedMemoryCalls {
  /**
   * Infers with whole tensors: with the batch axis if the model has one. Inputs are read when the call is made: later
   * changes of their arrays have no effect.
   *
   * An inference is retried only if it never left this machine, so that no request runs twice;
   * `retryLostInferences` retries it after a lost connection too.
   *
   * @throws TritonError INVALID_ARG for inputs that cannot be sent, INTERNAL for an invalid answer, and errors that the
   * server answers.
   * @example
   * ```ts
   * const result = await client.infer("classifier", {
   *   inputs: { image: ndarray(pixels, [1, 3, 224, 224]), threshold: Float32Array.of(0.5) },
   *   outputs: [{ name: "scores", classes: 3 }],
   *   signal: AbortSignal.timeout(1000),
   * });
   * result.strings("scores"); // ["0.900000:7:cat", ...]
   * ```
   */
  async infer(modelName: string, call: InferCall): Promise<InferResult<ResponseMessage>> {
    const compression = call.requestCompression ?? this.options.requestCompression;
    const request = encodeInferRequest(modelName, call);
    const idempotent = isRepeatable(this.options, call);
    const headers = withSequenceHeader(this.options, call);
    const answer = await this.calls.unary({ ...modelInfer, idempotent, compression }, request, {
      ...call,
      headers,
    });
    return decodeInferResponse(answer);
  }

  /**
   * Infers over one stream: sends `requests` as they come, and yields responses as they come. A failed request yields a
   * response with `error`, and the stream continues. The stream ends when all requests are answered. Leaving the loop
   * cancels the others.
   *
   * @throws TritonError CANCELLED when `signal` aborts, INVALID_ARG for a request that cannot be sent, and the status
   * with which the server ends the stream.
   * @example
   * ```ts
   * const requests = [{ modelName: "llm", inputs: { prompt: ["hello"] }, enableEmptyFinalResponse: true }];
   * for await (const { result, error, final } of client.streamInfer(requests)) {
   *   if (error) throw error;
   *   if (!final) process.stdout.write(result.strings("text")[0]);
   * }
   * ```
   */
  streamInfer(
    requests: StreamRequests,
    options: StreamInferOptions = {},
  ): AsyncGenerator<StreamInferResponse, void, void> {
    const { requestCompression } = this.options;
    const headers = withSequenceHeader(this.options, options);
    return streamInfer(this.calls, requests, { requestCompression, ...options, headers });
  }
}
