import {
  type AnswerJson,
  assertOptions,
  type CallByPosition,
  type InputValuesOf,
  type JsonSource,
  type ModelMetadata,
  parseAnswerJson,
  type ResultOf,
  readCall,
  type TensorSpec,
  toBase64,
  toJson,
} from "@tritonjs/protocol";
import { type Effect, invalidAnswer } from "../caller.js";
import type { InferResult, ModelsClient } from "../index.js";
import { isRepeatable, withSequenceHeader } from "../infer-request.js";
import { AnsweringModel, callInputs, KnownModel, type ModelCarrier } from "../known-model.js";
import { modelsClient } from "../models-client.js";
import {
  type CommonModelOptions,
  type CudaRegion,
  LOAD_OPTION_TYPES,
  REGION_TYPES,
  type SystemRegion,
} from "../options.js";
import {
  CALL_TYPES,
  type CallOptions,
  CLIENT_TYPES,
  type ClientOptions,
  INFER_CALL_TYPES,
  INFER_TYPES,
  type InferCall,
  type InferRequestOptions,
  type ModelCallOptions,
} from "./client-options.js";
import { generatedArrays, generateInputs } from "./generate-tensors.js";
import { answerError, excerpt, HttpCalls } from "./http-calls.js";
import { compressBody, type HttpAnswer, modelPath, segment, sharedMemoryPath } from "./http-carrier.js";
import {
  decodeInferResponse,
  encodeInferRequest,
  type GenerateInputs,
  type GenerateResponse,
  generate,
  generateStream,
  type InferResponse,
} from "./infer-messages.js";
import type {
  CudaRegionAnswer,
  ModelConfigAnswer,
  ModelIndexAnswer,
  ServerMetadataAnswer,
  Settings,
  StatisticsAnswer,
  SystemRegionAnswer,
} from "./server-answers.js";

export { isTimeout, TritonError } from "@tritonjs/protocol";
export type { CallOptions, ClientOptions, Fetch, InferCall } from "./client-options.js";
export { HttpStatusError } from "./http-calls.js";
export type { GenerateResponse, InferResponse } from "./infer-messages.js";
export type {
  CudaRegionAnswer,
  ModelConfigAnswer,
  ModelConfigTensor,
  ModelIndexAnswer,
  ServerMetadataAnswer,
  StatisticsAnswer,
  SystemRegionAnswer,
} from "./server-answers.js";

const LOAD_TYPES = { ...CALL_TYPES, ...LOAD_OPTION_TYPES };

/** Options for loading a model. */
export interface LoadModelOptions extends CallOptions {
  /** Replaces the configuration in the repository: Triton's fields, as an object or as JSON. */
  readonly config?: JsonSource;
  /** Replaces the files of the model's directory, by relative path such as `1/model.onnx`. Requires `config`. */
  readonly files?: Readonly<Record<string, Uint8Array>>;
}

/** Options of calls about trace settings: of the server, or of one model. */
interface TraceCallOptions extends CallOptions {
  /** @default the settings of the server */
  readonly modelName?: string;
}

/** New values by name; null undoes an earlier change. */
type NewSettings = Readonly<Record<string, JsonSource>>;

/**
 * A client of any server that speaks the v2 (KServe / Triton) protocol over HTTP, with the calls of Triton's Python
 * client. It runs wherever there is `fetch`.
 *
 * Failed calls reject with a `TritonError`:
 *
 * - with the server's text and the code of its status;
 * - with UNAVAILABLE when the server could not be reached or did not answer in time;
 * - with CANCELLED when `signal` aborted.
 *
 * @example
 * ```ts
 * const client = new InferenceServerClient("localhost:8000");
 * const result = await client.infer("linear", {
 *   inputs: { x: { datatype: "FP32", data: [[1, 2], [3, 4]] } },
 * });
 * result.array("y", "FP32").get(0, 0);
 * ```
 */
export class InferenceServerClient {
  readonly #calls: HttpCalls;
  readonly #options: ClientOptions;

  /**
   * @param url address of the server: `localhost:8000`, `https://example.org/triton`; or several servers: a list of
   * addresses, or `dns://name:8000` for all addresses of a name
   * @throws TritonError INVALID_ARG for an invalid HTTP address, and for an unknown option or one of another type.
   */
  constructor(url: string | readonly string[], options: ClientOptions = {}) {
    assertOptions("new InferenceServerClient()", options, CLIENT_TYPES);
    this.#calls = new HttpCalls(url, options);
    this.#options = options;
  }

  /**
   * True when the server answers.
   *
   * @throws TritonError UNAVAILABLE when there is no connection.
   */
  isServerLive(call: CallOptions = {}): Promise<boolean> {
    return this.#probe("v2/health/live", call);
  }

  /** True when all models are ready. */
  isServerReady(call: CallOptions = {}): Promise<boolean> {
    return this.#probe("v2/health/ready", call);
  }

  /** True when the model can infer; false also for an unknown model. */
  isModelReady(modelName: string, { modelVersion, ...call }: ModelCallOptions = {}): Promise<boolean> {
    return this.#probe(modelPath(modelName, modelVersion, "ready"), call);
  }

  /** Returns name, version and protocol extensions of the server. */
  getServerMetadata(call: CallOptions = {}): Promise<ServerMetadataAnswer> {
    return this.#get("v2", call);
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
    return this.#get(modelPath(modelName, modelVersion, ""), call);
  }

  /** Returns the configuration of a model, with Triton's field names. */
  getModelConfig(
    modelName: string,
    { modelVersion, ...call }: ModelCallOptions = {},
  ): Promise<ModelConfigAnswer> {
    return this.#get(modelPath(modelName, modelVersion, "config"), call);
  }

  /** Returns the statistics of a model, or of all models that are ready. */
  getInferenceStatistics(
    modelName = "",
    { modelVersion, ...call }: ModelCallOptions = {},
  ): Promise<StatisticsAnswer> {
    return this.#get(
      modelName === "" ? "v2/models/stats" : modelPath(modelName, modelVersion, "stats"),
      call,
    );
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
  async infer(modelName: string, call: InferCall): Promise<InferResult<InferResponse>> {
    assertOptions("infer()", call, INFER_CALL_TYPES);
    const path = modelPath(modelName, call.modelVersion, "infer");
    const { body, jsonLength } = encodeInferRequest(call, this.#options.binary);
    const headers: Record<string, string> = {
      "content-type": jsonLength === undefined ? "application/json" : "application/octet-stream",
    };
    if (jsonLength !== undefined) headers["inference-header-content-length"] = String(jsonLength);
    const compression = call.requestCompression ?? this.#options.requestCompression;
    if (compression !== undefined) headers["content-encoding"] = compression;
    const accepted = call.responseCompression ?? this.#options.responseCompression;
    if (accepted !== undefined) headers["accept-encoding"] = accepted;
    const sent = compression === undefined ? body : await compressBody(body, compression);
    const { sequence } = call;
    const answer = await this.#calls.request(
      {
        method: "POST",
        path,
        headers,
        body: sent,
        idempotent: isRepeatable(this.#options, call),
        balanced: true,
        sequence,
        tellsLimit: true,
      },
      { ...call, headers: withSequenceHeader(this.#options, call) },
    );
    return decodeInferResponse(answer.body, answer.headers);
  }

  /**
   * Inference for text: one flat object in, one out.
   *
   * @throws TritonError as {@link infer}, and UNKNOWN unless the model has exactly one response.
   * @example
   * ```ts
   * const { text } = await client.generate("llm", { prompt: "hello", max_tokens: 16 });
   * ```
   */
  async generate(
    modelName: string,
    inputs: GenerateInputs,
    options: ModelCallOptions = {},
  ): Promise<GenerateResponse> {
    assertOptions("call", options, CALL_TYPES);
    return generate(this.#calls, modelName, inputs, options);
  }

  /**
   * Inference for text, response by response, for decoupled and other models. Leaving the loop closes the connection,
   * which tells the server to stop. `timeoutMs` limits the time for each response.
   *
   * @throws TritonError as {@link infer}; UNKNOWN for an error of the model after its first response, because the
   * protocol does not send its code.
   * @example
   * ```ts
   * for await (const { token } of client.generateStream("llm", { prompt: "hello" })) show(token);
   * ```
   */
  generateStream(
    modelName: string,
    inputs: GenerateInputs,
    options: ModelCallOptions = {},
  ): AsyncGenerator<GenerateResponse, void, void> {
    assertOptions("call", options, CALL_TYPES);
    return generateStream(this.#calls, modelName, inputs, options);
  }

  /** Returns the models of the repository; with `ready` only models that can infer. */
  async getModelRepositoryIndex({
    ready,
    ...call
  }: CallOptions & { ready?: boolean } = {}): Promise<ModelIndexAnswer[]> {
    const answer = await this.#post("v2/repository/index", { ready }, "reads", call);
    return jsonOf(answer) as unknown as ModelIndexAnswer[];
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
    const parameters: Record<string, JsonSource> = {};
    if (config !== undefined) parameters.config = typeof config === "string" ? config : toJson(config);
    for (const [path, content] of Object.entries(files)) {
      parameters[path.startsWith("file:") ? path : `file:${path}`] = toBase64(content);
    }
    await this.#post(repositoryPath(modelName, "load"), { parameters }, "changes", call);
  }

  /** Unloads a model; with `unloadDependents` also the models that were loaded because of it. */
  async unloadModel(
    modelName: string,
    { unloadDependents = false, ...call }: CallOptions & { unloadDependents?: boolean } = {},
  ): Promise<void> {
    const parameters = { unload_dependents: unloadDependents };
    await this.#post(repositoryPath(modelName, "unload"), { parameters }, "changes", call);
  }

  /** Returns the trace settings of the server or of a model. */
  getTraceSettings({ modelName, ...call }: TraceCallOptions = {}): Promise<Settings> {
    return this.#get(tracePath(modelName), call);
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
    settings: NewSettings,
    { modelName, ...call }: TraceCallOptions = {},
  ): Promise<Settings> {
    return jsonOf(await this.#post(tracePath(modelName), settings, "changes", call)) as Settings;
  }

  /** Returns the log settings. */
  getLogSettings(call: CallOptions = {}): Promise<Settings> {
    return this.#get("v2/logging", call);
  }

  /** Changes log settings and returns all of them. */
  async updateLogSettings(settings: NewSettings, call: CallOptions = {}): Promise<Settings> {
    return jsonOf(await this.#post("v2/logging", settings, "changes", call)) as Settings;
  }

  /** Returns the registered regions, or one of them. */
  getSystemSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<SystemRegionAnswer[]> {
    return this.#get(sharedMemoryPath("system", regionName, "status"), call);
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
    const region = { key, offset, byte_size: byteSize };
    await this.#post(sharedMemoryPath("system", regionName, "register"), region, "changes", call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterSystemSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.#post(sharedMemoryPath("system", regionName, "unregister"), {}, "changes", call);
  }

  /** Returns the registered regions, or one of them. */
  getCudaSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<CudaRegionAnswer[]> {
    return this.#get(sharedMemoryPath("cuda", regionName, "status"), call);
  }

  /** Registers a region at the server under a name. */
  async registerCudaSharedMemory(
    regionName: string,
    memory: CudaRegion,
    call: CallOptions = {},
  ): Promise<void> {
    assertOptions("region", memory, REGION_TYPES);
    const { rawHandle, deviceId, byteSize } = memory;
    const b64 = typeof rawHandle === "string" ? rawHandle : toBase64(rawHandle);
    const region = { raw_handle: { b64 }, device_id: deviceId, byte_size: byteSize };
    await this.#post(sharedMemoryPath("cuda", regionName, "register"), region, "changes", call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterCudaSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.#post(sharedMemoryPath("cuda", regionName, "unregister"), {}, "changes", call);
  }

  /** Ends the calls in flight with CANCELLED. Later calls fail with UNAVAILABLE. */
  close(): void {
    this.#calls.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  /** True for 200; false for the statuses of a server or a model that is not ready. */
  async #probe(path: string, call: CallOptions): Promise<boolean> {
    assertOptions("call", call, CALL_TYPES);
    const outgoing = { method: "GET", path, idempotent: true } as const;
    const { status, headers, body } = await this.#calls.send(outgoing, call);
    if (status === 200) return true;
    if (status === 400 || status === 404 || status === 503) return false;
    throw answerError(status, headers, body);
  }

  async #get<T>(path: string, call: CallOptions): Promise<T> {
    assertOptions("call", call, CALL_TYPES);
    return jsonOf(await this.#calls.request({ method: "GET", path, idempotent: true }, call)) as T;
  }

  async #post(path: string, json: JsonSource, effect: Effect, call: CallOptions): Promise<HttpAnswer> {
    assertOptions("call", call, CALL_TYPES);
    const headers = { "content-type": "application/json" };
    const idempotent = effect === "reads";
    return this.#calls.request({ method: "POST", path, headers, body: toJson(json), idempotent }, call);
  }
}

function jsonOf({ body }: HttpAnswer): AnswerJson {
  const text = new TextDecoder().decode(body);
  try {
    return parseAnswerJson(text);
  } catch (cause) {
    throw invalidAnswer(`cannot read the server's answer: expected JSON${excerpt(text)}`, cause);
  }
}

function repositoryPath(modelName: string, action: string): string {
  return `v2/repository/models/${segment("model name", modelName)}/${action}`;
}

function tracePath(modelName: string | undefined): string {
  return modelName === undefined ? "v2/trace/setting" : modelPath(modelName, undefined, "trace/setting");
}

const CARRIER: ModelCarrier<InferenceServerClient> = {
  open: (url, options) => new InferenceServerClient(url, options),
  serverTypes: CLIENT_TYPES,
  inferTypes: INFER_TYPES,
  forDecoupled: "DecoupledModelClient",
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
 * await using linear = new ModelClient("localhost:8000", "linear");
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
   * @throws TritonError INVALID_ARG for an invalid HTTP address, and for an unknown option or one of another type.
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
 * A client of one decoupled model: a request has any number of responses, which arrive as the model makes them. Over HTTP
 * they come through Triton's generate extension, which sends tensors as JSON.
 *
 * @example
 * ```ts
 * await using llm = new DecoupledModelClient("localhost:8000", "llm");
 * for await (const { text } of llm.inferSample({ prompt: "hello" })) show(text.text());
 * ```
 */
export class DecoupledModelClient<
  const I extends readonly TensorSpec[] = readonly TensorSpec[],
  const O extends readonly TensorSpec[] = readonly TensorSpec[],
> extends KnownModel<InferenceServerClient> {
  /**
   * @param server address of the server, a list of addresses, or a client, which `close` leaves open
   * @throws TritonError INVALID_ARG for an invalid HTTP address, and for an unknown option or one of another type.
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
   * Infers one sample and yields its responses, without the batch axis. The request is sent when the first response is
   * requested. Leaving the loop closes the connection, which tells the server to stop. `timeoutMs` limits the time for
   * each response.
   *
   * @throws TritonError INVALID_ARG for inputs that do not fit the model or have no JSON form; UNAVAILABLE when the model
   * is not ready in time, and after `close`; CANCELLED when `signal` aborts; UNKNOWN for an error of the model after its
   * first response.
   */
  inferSample(inputs: InputValuesOf<I>, options?: ModelInferOptions): AsyncGenerator<ResultOf<O>, void, void>;
  async *inferSample(...given: readonly unknown[]): AsyncGenerator<ResultOf<O>, void, void> {
    const { modelName } = this;
    const read = readCall<ModelInferOptions>(modelName, given);
    const { headers, query, signal, timeoutMs, ...request } = read.options ?? {};
    const prepared = await this.prepared(signal);
    const inputs = callInputs(prepared.signature, read, "added");
    this.assertInferOptions(read.options);
    const { output } = await this.modelConfig();
    const { modelVersion } = this.options;
    const responses = this.server.generateStream(modelName, generateInputs(modelName, inputs, request), {
      modelVersion,
      ...(headers !== undefined && { headers }),
      ...(query !== undefined && { query }),
      signal: signal === undefined ? this.closed : AbortSignal.any([signal, this.closed]),
      timeoutMs: timeoutMs ?? prepared.timeoutMs,
    });
    for await (const response of responses) {
      yield generatedArrays(modelName, output, response) as ResultOf<O>;
    }
  }
}

/**
 * Opens a client of all models of a server, typed by the models that it serves. The type parameter is the type of the
 * handles of a program in the same repository, of which no code is imported, or the interface that
 * `tritonjs types http://host:8000` writes.
 *
 * @param server address of the server, a list of addresses, or a client, which `close` leaves open
 * @throws TritonError INVALID_ARG for an invalid HTTP address, and for an unknown option or one of another type.
 * @example
 * ```ts
 * import type { models } from "../server/models.js";
 *
 * const client = createClient<typeof models>(location.origin);
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
