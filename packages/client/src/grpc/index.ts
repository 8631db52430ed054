import {
  assertOptions,
  type BatchAxis,
  type CallByPosition,
  type InputValuesOf,
  type ModelConfig,
  type ModelIndexEntry,
  type ModelMetadata,
  type ModelStatisticsReport,
  type ResultOf,
  readCall,
  type ServerMetadata,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import { inference, type RpcRequest, type RpcResponse, type UnaryRpcName } from "@tritonjs/protocol/grpc";
import { invalidAnswer } from "../caller.js";
import type { InferResult, ModelsClient } from "../index.js";
import { isRepeatable, withSequenceHeader } from "../infer-request.js";
import { resultArrays } from "../infer-result.js";
import { AnsweringModel, callInputs, KnownModel, type ModelCarrier } from "../known-model.js";
import { modelsClient } from "../models-client.js";
import {
  CALL_OPTION_TYPES,
  type CommonModelOptions,
  type CudaRegion,
  LOAD_OPTION_TYPES,
  REGION_TYPES,
  type SystemRegion,
} from "../options.js";
import {
  type CallOptions,
  CLIENT_TYPES,
  type ClientOptions,
  INFER_CALL_TYPES,
  INFER_TYPES,
  type InferCall,
  type InferRequestOptions,
  type ModelCallOptions,
} from "./client-options.js";
import {
  GrpcCalls,
  method,
  type StreamInferOptions,
  type StreamInferResponse,
  type StreamRequests,
  streamInfer,
} from "./grpc-calls.js";
import { decodeInferResponse, encodeInferRequest, type ResponseMessage } from "./infer-messages.js";

export { isTimeout, TritonError } from "@tritonjs/protocol";
export { GrpcStatusError } from "./call-error.js";
export type { CallOptions, ClientOptions, InferCall, StreamInferRequest } from "./client-options.js";
export type { StreamInferOptions, StreamInferResponse } from "./grpc-calls.js";

const LOAD_TYPES = { ...CALL_OPTION_TYPES, ...LOAD_OPTION_TYPES };

/** Options for loading a model. */
export interface LoadModelOptions extends CallOptions {
  /** Replaces the configuration in the repository: Triton's fields, as an object or as JSON. */
  readonly config?: string | object;
  /** Replaces the files of the model's directory, by relative path such as `1/model.onnx`. Requires `config`. */
  readonly files?: Readonly<Record<string, Uint8Array>>;
}

/** Options of calls about trace settings: of the server, or of one model. */
interface TraceCallOptions extends CallOptions {
  /** @default the settings of the server */
  readonly modelName?: string;
}

/** Trace settings by name: all are lists of strings. */
type ServerTraceSettings = Readonly<Record<string, readonly string[]>>;

/** New trace settings by name: null, or an empty list, undoes an earlier change. */
type NewTraceSettings = Readonly<Record<string, string | number | readonly string[] | null>>;

/** Log settings by name. */
type ServerLogSettings = Readonly<Record<string, string | number | boolean>>;

/** A registered region of the system's shared memory. */
type SystemRegionStatus = Required<SystemRegion> & { readonly name: string };

/** A registered region of CUDA shared memory. */
type CudaRegionStatus = Omit<CudaRegion, "rawHandle"> & { readonly name: string };

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
export class InferenceServerClient {
  readonly #calls: GrpcCalls;
  readonly #options: ClientOptions;

  /**
   * @param url address of the server: `localhost:8001`, `grpcs://example.org:443`; or several servers: a list of
   * addresses, or `dns://name:8001` for all addresses of a name
   * @throws TritonError INVALID_ARG for an invalid address or certificate, an unknown option, and one of another type.
   */
  constructor(url: string | readonly string[], options: ClientOptions = {}) {
    assertOptions("new InferenceServerClient()", options, CLIENT_TYPES);
    this.#calls = new GrpcCalls(url, options);
    this.#options = options;
  }

  /**
   * True when the server answers.
   *
   * @throws TritonError UNAVAILABLE when there is no connection.
   */
  async isServerLive(call: CallOptions = {}): Promise<boolean> {
    return (await this.#reads("ServerLive", {}, call)).live;
  }

  /** True when all models are ready. */
  async isServerReady(call: CallOptions = {}): Promise<boolean> {
    return (await this.#reads("ServerReady", {}, call)).ready;
  }

  /** True when the model can infer; false also for an unknown model. */
  async isModelReady(modelName: string, { modelVersion, ...call }: ModelCallOptions = {}): Promise<boolean> {
    return (await this.#reads("ModelReady", versionOf(modelName, modelVersion), call)).ready;
  }

  /** Returns name, version and protocol extensions of the server. */
  async getServerMetadata(call: CallOptions = {}): Promise<ServerMetadata> {
    const { name, version, extensions } = await this.#reads("ServerMetadata", {}, call);
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
    const request = versionOf(modelName, modelVersion);
    const { name, versions, platform, inputs, outputs } = await this.#reads("ModelMetadata", request, call);
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
    const request = versionOf(modelName, modelVersion);
    const { config } = await this.#reads("ModelConfig", request, call);
    if (config == null) throw invalidAnswer(`the server sent no configuration of model '${modelName}'`);
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
    const request = versionOf(modelName, modelVersion);
    const { modelStats } = await this.#reads("ModelStatistics", request, call);
    return modelStats as unknown as ModelStatisticsReport[];
  }

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
    assertOptions("infer()", call, INFER_CALL_TYPES);
    const compression = call.requestCompression ?? this.#options.requestCompression;
    const request = encodeInferRequest(modelName, call);
    const idempotent = isRepeatable(this.#options, call);
    const headers = withSequenceHeader(this.#options, call);
    const answer = await this.#calls.unary(
      { ...method("ModelInfer", "infers"), idempotent, compression },
      request,
      {
        ...call,
        headers,
      },
    );
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
    const { requestCompression } = this.#options;
    const headers = withSequenceHeader(this.#options, options);
    return streamInfer(this.#calls, requests, { requestCompression, ...options, headers });
  }

  /** Returns the models of the repository; with `ready` only models that can infer. */
  async getModelRepositoryIndex({
    ready = false,
    ...call
  }: CallOptions & { ready?: boolean } = {}): Promise<ModelIndexEntry[]> {
    const { models } = await this.#reads("RepositoryIndex", { ready }, call);
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
  async loadModel(modelName: string, options: LoadModelOptions = {}): Promise<void> {
    assertOptions("call", options, LOAD_TYPES);
    const { config, files = {}, ...call } = options;
    const parameters: Record<string, inference.ModelRepositoryParameter.$Properties> = {};
    if (config !== undefined) {
      parameters.config = { stringParam: typeof config === "string" ? config : JSON.stringify(config) };
    }
    for (const [path, content] of Object.entries(files)) {
      parameters[path.startsWith("file:") ? path : `file:${path}`] = { bytesParam: content };
    }
    await this.#changes("RepositoryModelLoad", { modelName, parameters }, call);
  }

  /** Unloads a model; with `unloadDependents` also the models that were loaded because of it. */
  async unloadModel(
    modelName: string,
    { unloadDependents = false, ...call }: CallOptions & { unloadDependents?: boolean } = {},
  ): Promise<void> {
    const parameters = { unload_dependents: { boolParam: unloadDependents } };
    await this.#changes("RepositoryModelUnload", { modelName, parameters }, call);
  }

  /** Returns the trace settings of the server or of a model. */
  async getTraceSettings({ modelName = "", ...call }: TraceCallOptions = {}): Promise<ServerTraceSettings> {
    return traceSettings(await this.#reads("TraceSetting", { modelName }, call));
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
    return traceSettings(await this.#changes("TraceSetting", request, call));
  }

  /** Returns the log settings. */
  async getLogSettings(call: CallOptions = {}): Promise<ServerLogSettings> {
    return logSettings(await this.#reads("LogSettings", {}, call));
  }

  /** Changes log settings and returns all of them. */
  async updateLogSettings(settings: ServerLogSettings, call: CallOptions = {}): Promise<ServerLogSettings> {
    const values = Object.entries(settings).map(([name, value]) => [name, logValue(value)]);
    return logSettings(await this.#changes("LogSettings", { settings: Object.fromEntries(values) }, call));
  }

  /** Returns the registered regions, or one of them. */
  async getSystemSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<SystemRegionStatus[]> {
    const { regions } = await this.#reads("SystemSharedMemoryStatus", { name: regionName }, call);
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
    memory: SystemRegion,
    call: CallOptions = {},
  ): Promise<void> {
    assertOptions("region", memory, REGION_TYPES);
    const { key, byteSize, offset = 0 } = memory;
    await this.#changes("SystemSharedMemoryRegister", { name: regionName, key, byteSize, offset }, call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterSystemSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.#changes("SystemSharedMemoryUnregister", { name: regionName }, call);
  }

  /** Returns the registered regions, or one of them. */
  async getCudaSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<CudaRegionStatus[]> {
    const { regions } = await this.#reads("CudaSharedMemoryStatus", { name: regionName }, call);
    return Object.entries(regions).map(([name, { deviceId, byteSize }]) => ({
      name,
      deviceId: Number(deviceId ?? 0),
      byteSize: Number(byteSize ?? 0),
    }));
  }

  /** Registers a region at the server under a name. */
  async registerCudaSharedMemory(
    regionName: string,
    memory: CudaRegion,
    call: CallOptions = {},
  ): Promise<void> {
    assertOptions("region", memory, REGION_TYPES);
    const { rawHandle, deviceId, byteSize } = memory;
    const handle = typeof rawHandle === "string" ? Buffer.from(rawHandle, "base64") : rawHandle;
    await this.#changes(
      "CudaSharedMemoryRegister",
      { name: regionName, rawHandle: handle, deviceId, byteSize },
      call,
    );
  }

  /** Unregisters a region, or all of them. */
  async unregisterCudaSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.#changes("CudaSharedMemoryUnregister", { name: regionName }, call);
  }

  async #reads<N extends UnaryRpcName>(
    name: N,
    message: RpcRequest<N>,
    call: CallOptions,
  ): Promise<RpcResponse<N>> {
    assertOptions("call", call, CALL_OPTION_TYPES);
    return this.#calls.unary(method(name, "reads"), message, call);
  }

  async #changes<N extends UnaryRpcName>(
    name: N,
    message: RpcRequest<N>,
    call: CallOptions,
  ): Promise<RpcResponse<N>> {
    assertOptions("call", call, CALL_OPTION_TYPES);
    return this.#calls.unary(method(name, "changes"), message, call);
  }

  /** Ends the calls in flight with CANCELLED. Later calls fail with UNAVAILABLE. */
  close(): void {
    this.#calls.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

function versionOf(name: string, version: string | number | undefined) {
  return { name, version: String(version ?? "") };
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

const CARRIER: ModelCarrier<InferenceServerClient> = {
  open: (url, options) => new InferenceServerClient(url, options),
  serverTypes: CLIENT_TYPES,
  inferTypes: INFER_TYPES,
  forDecoupled: "DecoupledModelClient instead",
};

/** Options of a client of one model. */
export interface ModelClientOptions extends Omit<ClientOptions, "timeoutMs">, CommonModelOptions {}

/** Options of an inference with one model. */
export type ModelInferOptions = Omit<InferRequestOptions, "modelVersion">;

/**
 * A client of one model, after PyTriton's. It waits for the model, reads the configuration once, checks inputs before
 * they are sent, and adds the batch axis.
 *
 * The type parameters are those of `bind`: with them inputs and results are typed.
 *
 * @example
 * ```ts
 * await using linear = new ModelClient("localhost:8001", "linear");
 * const { y } = await linear.inferSample({ x: [1, 2] });             // y: ndarray of shape [3]
 * const batch = await linear.inferBatch({ x: [[1, 2], [3, 4]] });    // batch.y: ndarray of shape [2, 3]
 * ```
 */
export class ModelClient<
  const I extends readonly TensorSpec[] = readonly TensorSpec[],
  const O extends readonly TensorSpec[] = readonly TensorSpec[],
> extends AnsweringModel<I, O, InferenceServerClient, ModelInferOptions> {
  /**
   * @param server address of the server, a list of addresses, or a client, which `close` leaves open
   * @throws TritonError INVALID_ARG for an invalid address, and for an unknown option or one of another type.
   */
  constructor(
    server: string | readonly string[] | InferenceServerClient,
    modelName: string,
    options: ModelClientOptions = {},
  ) {
    super(CARRIER, server, modelName, options);
  }
}

/**
 * A client of one decoupled model: a request has any number of responses, which arrive as the model makes them. Each
 * call has its own stream, so calls do not wait for each other.
 *
 * @example
 * ```ts
 * await using llm = new DecoupledModelClient("localhost:8001", "llm");
 * for await (const { text } of llm.inferSample({ prompt: "hello" })) process.stdout.write(`${text.get(0)}`);
 * ```
 */
export class DecoupledModelClient<
  const I extends readonly TensorSpec[] = readonly TensorSpec[],
  const O extends readonly TensorSpec[] = readonly TensorSpec[],
> extends KnownModel<InferenceServerClient> {
  /**
   * @param server address of the server, a list of addresses, or a client, which `close` leaves open
   * @throws TritonError INVALID_ARG for an invalid address, and for an unknown option or one of another type.
   */
  constructor(
    server: string | readonly string[] | InferenceServerClient,
    modelName: string,
    options: ModelClientOptions = {},
  ) {
    super(CARRIER, server, modelName, options, "DecoupledModelClient");
  }

  /** Infers one sample with tensors in the order of the model's inputs: `inferSample(a, b)`, `inferSample(a, b, options)`. */
  inferSample(...call: CallByPosition<I, ModelInferOptions>): AsyncGenerator<ResultOf<O>, void, void>;
  /**
   * Infers one sample and yields its responses. A model with a batch axis gets one row, and the results come without
   * the axis. The request is sent when the first response is requested. Leaving the loop cancels the request.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit the model; UNSUPPORTED for a model that is not
   * decoupled; UNAVAILABLE when the model is not ready in time, and after `close`; CANCELLED when `signal` aborts; and
   * the first error that the server answers.
   */
  inferSample(inputs: InputValuesOf<I>, options?: ModelInferOptions): AsyncGenerator<ResultOf<O>, void, void>;
  inferSample(...given: readonly unknown[]): AsyncGenerator<ResultOf<O>, void, void> {
    return this.#infer(given, "added");
  }

  inferBatch(...call: CallByPosition<I, ModelInferOptions>): AsyncGenerator<ResultOf<O>, void, void>;
  /** Infers a batch of rows. Throws as {@link inferSample}, and INVALID_ARG for a model without a batch axis. */
  inferBatch(inputs: InputValuesOf<I>, options?: ModelInferOptions): AsyncGenerator<ResultOf<O>, void, void>;
  inferBatch(...given: readonly unknown[]): AsyncGenerator<ResultOf<O>, void, void> {
    return this.#infer(given, "given");
  }

  async *#infer(given: readonly unknown[], axis: BatchAxis): AsyncGenerator<ResultOf<O>, void, void> {
    const read = readCall<ModelInferOptions>(this.modelName, given);
    const { headers, signal, timeoutMs, requestCompression, ...request } = read.options ?? {};
    const { signature, timeoutMs: defaultTimeoutMs } = await this.prepared(signal);
    if (signature.decoupled === false) {
      throw new TritonError(
        "UNSUPPORTED",
        `model '${this.modelName}' is not decoupled, so it has a single response: use ModelClient`,
        { reason: "DECOUPLED_MODEL" },
      );
    }
    const inputs = callInputs(signature, read, axis);
    this.assertInferOptions(read.options);
    const { modelName } = this;
    const { modelVersion } = this.options;
    const only = { ...request, modelName, modelVersion, inputs };
    const responses = this.server.streamInfer([only], {
      headers,
      signal: signal === undefined ? this.closed : AbortSignal.any([signal, this.closed]),
      timeoutMs: timeoutMs ?? defaultTimeoutMs,
      endOnError: true,
      ...(requestCompression !== undefined && { requestCompression }),
    });
    const strip = axis === "added" && signature.maxBatchSize > 0;
    for await (const { result, error } of responses) {
      if (error !== undefined) throw error;
      yield resultArrays(result, strip) as ResultOf<O>;
    }
  }
}

/**
 * Opens a client of all models of a server, typed by the models that it serves. The type parameter is the type of the
 * handles of a program in the same repository, of which no code is imported, or the interface that
 * `tritonjs types grpc://host:8001` writes.
 *
 * @param server address of the server, a list of addresses, or a client, which `close` leaves open
 * @throws TritonError INVALID_ARG for an invalid address, and for an unknown option or one of another type.
 * @example
 * ```ts
 * import type { models } from "../server/models.js";
 *
 * await using client = createClient<typeof models>("localhost:8001");
 * const { y } = await client.model("linear").inferSample({ x: [1, 2] });
 * ```
 */
export function createClient<Models = Readonly<Record<string, unknown>>>(
  server: string | readonly string[] | InferenceServerClient,
  options: ModelClientOptions = {},
): ModelsClient<Models, ModelInferOptions, InferenceServerClient> {
  return modelsClient<Models, ModelInferOptions, InferenceServerClient>(CARRIER, server, options, {
    answering: ModelClient,
    streaming: DecoupledModelClient,
  });
}
