import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { assertOptions, errorFor, optionTypes, TritonError } from "@tritonjs/protocol";
import type { InferenceService, Restrictions, ServiceFrontend, TlsOptions } from "@tritonjs/server";
import { firstHeader, type V2Request } from "../exchange/request.js";
import {
  emptyResponse,
  errorResponse,
  faultResponse,
  jsonResponse,
  type V2Response,
} from "../exchange/response.js";
import { answerErrors, HttpAccess, type V2Handler, v2Handler } from "../routes/v2-handler.js";
import { type HttpLimits, ListeningFrontend } from "../server/listening-frontend.js";
import { BinaryContentType, RewrittenRequest, readyModels } from "./cloud-request.js";

/** The operation behind `/invocations`. */
export type SageMakerInferenceType = "infer" | "generate" | "generate_stream";

/** Options of {@link sageMaker}, named after tritonserver's flags and the variables of its image. */
export interface SageMakerOptions {
  /** Port to listen on: `SAGEMAKER_BIND_TO_PORT`; 8080 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `0.0.0.0` unless given, because the platform calls from outside the container. */
  readonly address?: string;
  /** Model of `/invocations`; the only model in service at the time of a request unless given. */
  readonly defaultModelName?: string;
  /** The operation behind `/invocations`; `infer` unless given. */
  readonly inferenceType?: SageMakerInferenceType;
  /** Whether `/ping` answers that the server is live or that its models are ready; `ready` unless given. */
  readonly pingMode?: "live" | "ready";
  /**
   * Serves the routes of multi-model endpoints (`/models`), which load and unload models. Needs
   * `new Triton({ modelControlMode: "explicit" })`; false unless given.
   */
  readonly multiModel?: boolean;
  /** Directory to which the platform unpacks the archives of a multi-model endpoint; `/opt/ml/models` unless given. */
  readonly modelsDirectory?: string;
  /** Largest tensor of a request in bytes; 64 MiB unless given. */
  readonly maxInputSize?: number;
  /**
   * Groups of routes that require a header. Unless given, pings and invocations require none, because the platform passes
   * on no secrets, and the routes that list, load and unload models require the access token of the `Triton`'s `security`
   * if the program has chosen one.
   */
  readonly restrictions?: Restrictions;
  /** Encrypts connections; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Limits on the size and the duration of requests. */
  readonly limits?: Partial<HttpLimits>;
}

const SAGEMAKER_OPTION_TYPES = optionTypes<SageMakerOptions>({
  port: "number",
  address: "string",
  defaultModelName: "string",
  inferenceType: "string",
  pingMode: "string",
  multiModel: "boolean",
  modelsDirectory: "string",
  maxInputSize: "number",
  restrictions: "object",
  tls: "object",
  limits: "object",
});

const BINARY = new BinaryContentType("application/vnd.sagemaker-triton.binary+json");
/** Milliseconds that an unload waits for requests in flight. The platform gives up after 360 seconds. */
const UNLOAD_TIMEOUT_MS = 350_000;

/**
 * The routes of Amazon SageMaker on a port of their own: `/ping` and `/invocations`, and with `multiModel` those of
 * multi-model endpoints. Binary tensors have the content type
 * `application/vnd.sagemaker-triton.binary+json;json-header-size=<bytes of JSON>`.
 *
 * Errors have the statuses of the v2 protocol, so a client can tell its own mistakes from a full queue. Triton answers
 * all of them with 400. An out-of-memory error has 507, as the platform requires.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * await triton.serve({ frontends: [sageMaker({ defaultModelName: "resnet" })] });
 * ```
 */
export function sageMaker(options: SageMakerOptions = {}): ServiceFrontend {
  assertOptions("sageMaker()", options, SAGEMAKER_OPTION_TYPES);
  const { port = 8080, address = "0.0.0.0", tls, limits } = options;
  return new ListeningFrontend(
    { name: "sagemaker", port, address, portHint: "sageMaker({ port })", tls, limits },
    (service) => answerErrors(sageMakerHandler(service, options)),
  );
}

function sageMakerHandler(service: InferenceService, options: SageMakerOptions): V2Handler {
  const { inferenceType = "infer", pingMode = "ready", restrictions = {} } = options;
  const routes = v2Handler(service, {
    maxInputSize: options.maxInputSize,
    maxInputSizeName: "sageMaker({ maxInputSize })",
    restrictions,
  });
  const infer = async (request: V2Request, model: string, operation: SageMakerInferenceType) => {
    const path = `/v2/models/${encodeURIComponent(model)}/${operation}`;
    const response = await routes(
      new RewrittenRequest(request, request.method, path, BINARY.headersOf(request)),
    );
    return response && withInsufficientStorage(BINARY.typed(response));
  };
  const access = new HttpAccess(service, options.restrictions ?? chosenByProgram(service.restrictions));
  const multiModel = new MultiModelEndpoint(
    service,
    options.modelsDirectory ?? "/opt/ml/models",
    (request, model) => infer(request, model, "infer"),
  );
  return async (request) => {
    if (request.path === "/ping" && request.method === "GET") {
      return routes(new RewrittenRequest(request, "GET", `/v2/health/${pingMode}`));
    }
    if (request.path === "/invocations" && request.method === "POST") {
      return infer(request, options.defaultModelName ?? (await onlyModel(service)), inferenceType);
    }
    if (!/^\/models(\/|$)/.test(request.path)) return bad();
    if (!request.path.endsWith("/invoke")) {
      const refusal = await access.refusal(request, "model-repository", "application/json");
      if (refusal !== undefined) return refusal;
    }
    if (options.multiModel || request.method === "GET") return multiModel.handle(request);
    return faultResponse(400, SINGLE_MODEL, "application/json");
  };
}

/** Restrictions whose secret clients can know. */
function chosenByProgram(restrictions: Restrictions): Restrictions {
  return Object.fromEntries(Object.entries(restrictions).filter(([, one]) => !one.isGenerated));
}

const SINGLE_MODEL =
  "/models: expected a multi-model endpoint, got one of a single model: set SAGEMAKER_MULTI_MODEL=true, " +
  "--sagemaker-multi-model or sageMaker({ multiModel: true })";

/** @throws TritonError INVALID_ARG unless exactly one model is in service. */
async function onlyModel(service: InferenceService): Promise<string> {
  const { names, only } = await readyModels(service);
  if (only !== undefined) return only;
  const text = `/invocations: expected one model in service, or a default model; got ${names.join(", ") || "none"}`;
  throw errorFor("INVALID_OPTION", text);
}

const MAX_LOAD_REQUEST = 64 * 1024;

/** The routes of multi-model endpoints: list, load, describe, invoke and unload models. */
class MultiModelEndpoint {
  /** The loaded models by the platform's names: their names here, and the directories that are their repositories. */
  readonly #models = new Map<string, { readonly name: string; readonly repository: string }>();
  readonly #loading = new Set<string>();

  /** @param root directory of all unpacked archives */
  constructor(
    private readonly service: InferenceService,
    private readonly root: string,
    private readonly invoke: (request: V2Request, modelName: string) => ReturnType<V2Handler>,
  ) {}

  /** Answers a request whose path begins with `/models`; undefined if the client has left. */
  async handle(request: V2Request): Promise<V2Response | undefined> {
    const [, key, action] = /^\/models(?:\/([^/]+)(\/invoke)?)?\/?$/.exec(request.path) ?? [];
    const { method } = request;
    if (key === undefined) {
      if (!/^\/models\/?$/.test(request.path)) return bad();
      if (method === "GET") return this.#list();
      return method === "POST" ? this.#load(request) : bad();
    }
    const name = decodeURIComponent(key);
    if (action !== undefined) return method === "POST" ? this.#infer(request, name) : bad();
    if (method === "GET") return this.#describe(name);
    return method === "DELETE" ? this.#unload(name) : bad();
  }

  #list(): V2Response {
    const models = [...this.#models]
      .filter(([, { name }]) => this.service.isModelReady(name, ""))
      .map(([key, { repository }]) => ({ modelName: key, modelUrl: repository }));
    return jsonResponse({ models });
  }

  #describe(key: string): V2Response {
    const model = this.#models.get(key);
    return model === undefined ? notFound() : jsonResponse({ modelName: key, modelUrl: model.repository });
  }

  async #infer(request: V2Request, key: string): Promise<V2Response | undefined> {
    const model = this.#models.get(key);
    return model === undefined ? notFound() : this.invoke(request, model.name);
  }

  async #load(request: V2Request): Promise<V2Response> {
    const memory = this.service.requestMemory.share();
    let body: Uint8Array;
    try {
      body = await request.readBody(memory, MAX_LOAD_REQUEST);
    } finally {
      memory.release();
    }
    const { model_name: key, url } = readLoadRequest(body);
    const name = firstHeader(request, "x-amzn-sagemaker-target-model") ?? key;
    try {
      await this.#loadArchive(key, url, name);
    } catch (thrown) {
      return withInsufficientStorage(answerOf(request, thrown));
    }
    return emptyResponse(200, "text/plain");
  }

  /**
   * Loads the model of an archive.
   *
   * @param key name that the platform gives it
   * @param url directory to which the platform has unpacked the archive
   * @param name name of the model in this server
   * @throws TritonError ALREADY_EXISTS for a name that is in use; otherwise the error of the load. After an error,
   * nothing stays registered.
   */
  async #loadArchive(key: string, url: string, name: string): Promise<void> {
    if (this.#models.has(key) || this.#loading.has(key)) {
      throw new TritonError("ALREADY_EXISTS", `model '${key}' is already loaded`);
    }
    this.#loading.add(key);
    try {
      const { repository, directory } = await placeOf(url, this.root);
      await this.service.registerModelRepository!(repository, { [directory]: name });
      try {
        await this.service.loadModel(name, {});
      } catch (error) {
        this.service.unregisterModelRepository!(repository);
        throw error;
      }
      this.#models.set(key, { name, repository });
    } finally {
      this.#loading.delete(key);
    }
  }

  /**
   * Unloads a model and the models that only it needs. Resolves when its requests are answered, or after the time
   * limit.
   */
  async #unload(key: string): Promise<V2Response> {
    const model = this.#models.get(key);
    if (model === undefined) return notFound();
    this.#models.delete(key);
    try {
      await this.service.unloadModel(model.name, { unloadDependents: true });
      await this.#unloaded(model.name);
    } finally {
      this.service.unregisterModelRepository!(model.repository);
    }
    return emptyResponse(200, "text/plain");
  }

  /** Resolves when no version of the model is in service or ending. */
  #unloaded(name: string): Promise<void> {
    let resolve: () => void = () => {};
    const unloaded = new Promise<void>((done) => {
      resolve = done;
    });
    const look = async () => {
      const rows = await this.service.repositoryIndex(false);
      const left = rows.filter(
        (row) => row.name === name && row.state !== undefined && row.state !== "UNAVAILABLE",
      );
      if (left.length === 0) resolve();
    };
    const stopListening = this.service.onChange(() => void look().catch(resolve));
    const timer = setTimeout(resolve, UNLOAD_TIMEOUT_MS);
    void look().catch(resolve);
    return unloaded.finally(() => {
      stopListening();
      clearTimeout(timer);
    });
  }
}

/** A load request that fails answers 409 for a name in use, and 400 for any other fault of the request or the model. */
function answerOf(request: V2Request, thrown: unknown): V2Response {
  const response = errorResponse(request, thrown, "application/json");
  const isTaken = TritonError.is(thrown) && thrown.code === "ALREADY_EXISTS";
  return { ...response, status: isTaken ? 409 : 400 };
}

function readLoadRequest(body: Uint8Array): { readonly model_name: string; readonly url: string } {
  let read: unknown;
  try {
    read = JSON.parse(Buffer.from(body).toString("utf8"));
  } catch (cause) {
    throw errorFor("INVALID_LOAD_REQUEST", `load model: the body is not JSON: ${(cause as Error).message}`, {
      cause,
    });
  }
  const { model_name, url } = (read ?? {}) as { model_name?: unknown; url?: unknown };
  if (typeof model_name === "string" && model_name !== "" && typeof url === "string" && url !== "") {
    return { model_name, url };
  }
  throw errorFor(
    "INVALID_LOAD_REQUEST",
    "load model: expected an object with the texts 'model_name' and 'url'",
  );
}

const bad = () => emptyResponse(400, "text/plain");
const notFound = () => emptyResponse(404, "text/plain");

const ENSEMBLE = /platform:\s*"ensemble"/;
/** System directories. They never hold models, even if the platform names one. */
const SYSTEM = /^\/(dev|proc|sys)(\/|$)/;

/**
 * Finds the model in the directory to which the platform has unpacked an archive: the directory itself if it has a
 * `config.pbtxt`, else its only subdirectory, else the ensemble among its subdirectories.
 *
 * @param root directory of all unpacked archives: `/opt/ml/models`
 * @returns the directory to register as a repository, and the directory of the model in it
 * @throws TritonError INVALID_ARG for any other directory, and for one without a model, NOT_FOUND for one that does not
 * exist.
 */
async function placeOf(
  url: string,
  root: string,
): Promise<{ readonly repository: string; readonly directory: string }> {
  const path = resolve(url);
  const parts = new RegExp(`^${escaped(resolve(root))}/[0-9A-Za-z._]+/model(/[^/]+)?$`).exec(path);
  if (SYSTEM.test(path) || parts === null)
    throw badUrl(url, `expected a path of the form ${root}/<hash>/model[/<subdir>]`);
  const real = await realpath(path).catch(() => {
    throw errorFor("MODEL_FILES_NOT_FOUND", `Invalid "url" '${url}': there is no such directory`);
  });
  if (!real.startsWith(`${await realpath(root)}/`)) throw badUrl(url, `it leads out of ${root}`);
  if (await isFile(join(path, "config.pbtxt")))
    return { repository: dirname(path), directory: basename(path) };
  return { repository: path, directory: await modelIn(path, url) };
}

async function modelIn(path: string, url: string): Promise<string> {
  const entries = await readdir(path, { withFileTypes: true });
  const directories = entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map(({ name }) => name);
  const [only] = directories;
  if (only !== undefined && directories.length === 1) return only;
  for (const directory of directories.sort()) {
    const config = await readFile(join(path, directory, "config.pbtxt"), "utf8").catch(() => "");
    if (ENSEMBLE.test(config)) return directory;
  }
  const found = directories.length === 0 ? "none" : `${directories.join(", ")}, and none is an ensemble`;
  throw badUrl(url, `expected one directory of a model, or an ensemble with its members; got ${found}`);
}

function badUrl(url: string, why: string): TritonError {
  return errorFor("INVALID_LOAD_REQUEST", `Invalid "url" '${url}': ${why}`);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

const LOOKED_AT = 64 * 1024;

/** Changes the status of an out-of-memory error to 507. The platform then unloads another model. */
function withInsufficientStorage(response: V2Response): V2Response {
  const { status, body } = response;
  if (status < 400 || !(body instanceof Uint8Array)) return response;
  const text = Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, LOOKED_AT)).toString("latin1");
  return TEXTS.some((known) => text.includes(known)) ? { ...response, status: 507 } : response;
}

/** Out-of-memory messages of frameworks: the list of Triton. */
const TEXTS = [
  "CUDA out of memory",
  "CUDA_OUT_OF_MEMORY",
  "Out of memory",
  "Out Of Memory",
  "out of memory",
  "MemoryError",
  "OutOfMemory",
  "OOM",
  "Dst tensor is not initialized",
  "Src tensor is not initialized",
  "CNMEM_STATUS_OUT_OF_MEMORY",
  "CUDNN_STATUS_NOT_INITIALIZED",
  "CUBLAS_STATUS_ALLOC_FAILED",
  "CUBLAS_STATUS_NOT_INITIALIZED",
  "Failed to allocate memory",
  "failed to allocate memory",
  "No space left on device",
];
