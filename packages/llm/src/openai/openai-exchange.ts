import { randomBytes } from "node:crypto";
import type { AccessGroup } from "@tritonjs/core/types";
import {
  firstHeader,
  type HttpTrace,
  InputTooLarge,
  type TracedExchange,
  traceReceived,
  type V2Request,
  type V2Response,
} from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import {
  Exchange,
  type FoundModel,
  type InferenceService,
  type InferInit,
  type RequestShare,
} from "@tritonjs/server";
import { readCallerHeaders } from "@tritonjs/server/internal";
import type { ChatMessage } from "../chat/chat-template.js";
import type { ChatTemplates } from "./chat-templates.js";
import { type FormBody, readFormBody } from "./form-body.js";
import type { ImageUrls } from "./image-urls.js";
import { readJsonBody } from "./json-body.js";
import type { OpenAiGroup } from "./openai-access.js";
import { OpenAiError } from "./openai-error.js";
import { acceptCommonFields, Fields, type FieldWarnings } from "./request-fields.js";
import type { StructureField } from "./text-model.js";

export interface OpenAiRoute {
  /** Matches the whole path. The group `model` is the name of a model, percent-encoded. */
  readonly path: RegExp;
  readonly method: "GET" | "POST";
  readonly group: OpenAiGroup;
  /** Group of the v2 protocol whose operations it uses. */
  readonly access: AccessGroup;
  /** @param model the decoded name in the path; empty on routes without one */
  handle(exchange: OpenAiExchange, model: string): V2Response | Promise<V2Response>;
}

/** The route of an endpoint that runs models. */
export function inferenceRoute(path: RegExp, handle: OpenAiRoute["handle"]): OpenAiRoute {
  return { path, method: "POST", group: "inference", access: "inference", handle };
}

export function jsonResult(value: unknown): V2Response {
  return {
    status: 200,
    headers: { "content-type": "application/json" },
    body: Buffer.from(JSON.stringify(value)),
  };
}

/** One request on its way through a route, and its requests to models. */
export class OpenAiExchange {
  readonly traces: HttpTrace[] = [];
  /** Counts the body of the request until it is answered. */
  readonly memory: RequestShare;
  /** When the request began to arrive, on the clock of traces; undefined on a server without traces. */
  readonly #startMs: number | undefined;

  /**
   * @param requestId id of the request, which the answer, the log and traces have
   * @param structureFields fields for the structure of the text, by the name of the model
   * @param imageUrls fetches the images of chats
   * @param maxBodySize largest body in bytes
   */
  constructor(
    readonly service: InferenceService,
    readonly request: V2Request,
    readonly requestId: string,
    readonly templates: ChatTemplates,
    readonly warnings: FieldWarnings,
    readonly structureFields: Readonly<Record<string, StructureField>>,
    private readonly imageUrls: ImageUrls,
    private readonly maxBodySize: number,
  ) {
    this.memory = service.requestMemory.share();
    this.#startMs = service.tracing?.now();
  }

  /**
   * Reads the body of the request, and warns of unknown fields.
   *
   * @param read reads all fields of the endpoint
   * @throws OpenAiError 413 for a body that is too large or has too many values, 415 for a compressed one, 400 for a
   * body that is not a JSON object, and for the first field at fault
   * @throws TritonError UNAVAILABLE for a body above the memory budget, ClientGone when the client leaves
   */
  async readBody<T>(read: (fields: Fields) => T): Promise<T> {
    const fields = new Fields(await readJsonBody(this.request, await this.#readBytes()));
    const value = read(fields);
    acceptCommonFields(fields);
    for (const name of fields.unread()) this.warnings.unknown(this.request.path, name);
    return value;
  }

  /**
   * Reads a form with files, and warns of unknown fields.
   *
   * @param read reads all fields of the endpoint
   * @throws OpenAiError 400 for a body that is not such a form; otherwise as `readBody`
   */
  async readForm<T>(read: (fields: Fields, files: FormBody["files"]) => T): Promise<T> {
    const type = firstHeader(this.request, "content-type") ?? "";
    if (!/^multipart\/form-data\b/i.test(type)) {
      const text = `content-type: expected multipart/form-data, got ${type === "" ? "none" : type}`;
      throw new OpenAiError(400, text, { code: "invalid_form" });
    }
    const { values, files } = await readFormBody(this.request, type, await this.#readBytes());
    const fields = new Fields(values);
    const value = read(fields, files);
    acceptCommonFields(fields);
    for (const name of fields.unread()) this.warnings.unknown(this.request.path, name);
    return value;
  }

  /** The messages of a chat with their images in them. @throws OpenAiError 400 for an image that is not there */
  async withImages(messages: readonly ChatMessage[]): Promise<readonly ChatMessage[]> {
    const left = new AbortController();
    const stopWatching = this.request.onGone(() => left.abort());
    try {
      return await this.imageUrls.inline(messages, left.signal);
    } finally {
      stopWatching();
    }
  }

  async #readBytes(): Promise<Uint8Array> {
    const { request, maxBodySize } = this;
    const encoding = firstHeader(request, "content-encoding") || "identity";
    if (encoding !== "identity") {
      const text = `content-encoding: expected identity, got ${encoding}`;
      throw new OpenAiError(415, text, { code: "unsupported_content_encoding" });
    }
    const declared = Number(firstHeader(request, "content-length") ?? 0);
    if (declared > maxBodySize) throw tooLarge(maxBodySize);
    let body: Uint8Array;
    try {
      // A body without offsets of tensors is limited by its bytes.
      body = await request.readBody(this.memory, maxBodySize, 0);
    } catch (thrown) {
      throw thrown instanceof InputTooLarge ? tooLarge(maxBodySize) : thrown;
    }
    if (body.length > maxBodySize) throw tooLarge(maxBodySize);
    return body;
  }

  /**
   * Looks up the model of the request. While its queue is full, waits for the refusal's turn.
   *
   * @throws OpenAiError 404 for an unknown model; TritonError UNAVAILABLE for one that is not ready, or whose queue is
   * full; ClientGone when the client leaves meanwhile
   */
  async lookUpModel(name: string): Promise<Exchange> {
    const call = new Exchange(this.service, this.request, this.findModel(name));
    await call.turn(this.requestId);
    return call;
  }

  /** @throws OpenAiError 404 for an unknown model; TritonError UNAVAILABLE for one that is not ready */
  findModel(name: string): FoundModel {
    try {
      return this.service.model(name, "");
    } catch (error) {
      if (!TritonError.is(error) || error.code !== "NOT_FOUND") throw error;
      throw unknownModel(name, error);
    }
  }

  /**
   * Makes a request to a model. Its trace begins, if it is selected or the client's headers continue one, and ends when
   * the answer to the client has been sent. The headers of the client say who it is and how long it waits.
   *
   * @param suffix distinguishes the ids of several requests
   */
  newCall(
    model: FoundModel,
    suffix: string,
    tensors: Pick<InferInit, "inputs" | "requestedOutputs">,
  ): { readonly call: Exchange; readonly init: InferInit } {
    const { service, request } = this;
    const call = new Exchange(service, undefined, model, "", { header: (name) => request.header?.(name) });
    const traced: TracedExchange = { service, request, model: model.name, trace: undefined };
    traceReceived(traced, this.#startMs);
    const { trace } = traced;
    if (trace !== undefined) this.traces.push(trace);
    call.trace = trace;
    const init: InferInit = { id: this.requestId + suffix, ...tensors, trace: trace?.request };
    readCallerHeaders(init, model.reads, request, firstHeader);
    return { call, init };
  }
}

/** Creates the error for a name that no model has. */
export function unknownModel(name: string, cause?: unknown): OpenAiError {
  const error = new OpenAiError(404, `Unknown model: ${name}`, { param: "model", code: "model_not_found" });
  error.cause = cause;
  return error;
}

function tooLarge(maxBodySize: number): OpenAiError {
  const text = `the body of the request is too large: expected at most ${maxBodySize} bytes; the server's option maxBodySize raises the limit`;
  return new OpenAiError(413, text, { code: "content_too_large" });
}

/** Makes an id with OpenAI's prefix of its kind: `chatcmpl-`, `call_`. */
export function newId(prefix: string): string {
  return prefix + randomBytes(16).toString("hex");
}

/** The current time as OpenAI writes it, in seconds. */
export function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
