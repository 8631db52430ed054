import type { InferenceService } from "@tritonjs/core/frontend";
import {
  emptyResponse,
  errorResponse,
  firstHeader,
  jsonResponse,
  type V2Request,
  type V2Response,
} from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import { withInsufficientStorage } from "./insufficient-storage.js";
import type { LoadedModels } from "./loaded-models.js";

/** Largest body of a load request, in bytes. */
const MAX_LOAD_REQUEST = 64 * 1024;

/** Runs an inference of a loaded model. */
export type Invoke = (request: V2Request, modelName: string) => Promise<V2Response | undefined>;

/** The routes of multi-model endpoints: list, load, describe, invoke and unload models. */
export class MultiModelRoutes {
  readonly #service: InferenceService;
  readonly #models: LoadedModels;
  readonly #invoke: Invoke;

  constructor(service: InferenceService, models: LoadedModels, invoke: Invoke) {
    this.#service = service;
    this.#models = models;
    this.#invoke = invoke;
  }

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
    const models = this.#models
      .inService()
      .map(([key, { repository }]) => ({ modelName: key, modelUrl: repository }));
    return jsonResponse({ models });
  }

  #describe(key: string): V2Response {
    const model = this.#models.find(key);
    return model === undefined ? notFound() : jsonResponse({ modelName: key, modelUrl: model.repository });
  }

  async #load(request: V2Request): Promise<V2Response> {
    const memory = this.#service.requestMemory.share();
    let body: Uint8Array;
    try {
      body = await request.readBody(memory, MAX_LOAD_REQUEST);
    } finally {
      memory.release();
    }
    const { model_name: key, url } = readLoadRequest(body);
    const name = firstHeader(request, "x-amzn-sagemaker-target-model") ?? key;
    try {
      await this.#models.load(key, url, name);
    } catch (thrown) {
      return withInsufficientStorage(errorOf(request, thrown));
    }
    return emptyResponse(200, "text/plain");
  }

  async #unload(key: string): Promise<V2Response> {
    return (await this.#models.unload(key)) ? emptyResponse(200, "text/plain") : notFound();
  }

  async #infer(request: V2Request, key: string): Promise<V2Response | undefined> {
    const model = this.#models.find(key);
    return model === undefined ? notFound() : this.#invoke(request, model.name);
  }
}

/** A load request that fails answers 409 for a name in use, and 400 for any other fault of the request or the model. */
function errorOf(request: V2Request, thrown: unknown): V2Response {
  const response = errorResponse(request, thrown, "application/json");
  const isTaken = TritonError.is(thrown) && thrown.code === "ALREADY_EXISTS";
  return { ...response, status: isTaken ? 409 : 400 };
}

function readLoadRequest(body: Uint8Array): { readonly model_name: string; readonly url: string } {
  let read: unknown;
  try {
    read = JSON.parse(Buffer.from(body).toString("utf8"));
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `load model: the body is not JSON: ${(cause as Error).message}`, {
      reason: "INVALID_LOAD_REQUEST",
      cause,
    });
  }
  const { model_name, url } = (read ?? {}) as { model_name?: unknown; url?: unknown };
  if (typeof model_name === "string" && model_name !== "" && typeof url === "string" && url !== "") {
    return { model_name, url };
  }
  throw new TritonError(
    "INVALID_ARG",
    "load model: expected an object with the texts 'model_name' and 'url'",
    {
      reason: "INVALID_LOAD_REQUEST",
    },
  );
}

const bad = () => emptyResponse(400, "text/plain");
const notFound = () => emptyResponse(404, "text/plain");
