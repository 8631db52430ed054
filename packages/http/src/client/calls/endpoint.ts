import type { CallOptions, ClientOptions } from "../client-options.js";
import { TritonError } from "../core.js";
import { type JsonValue, parseJson } from "../json/parse-json.js";
import { type JsonSource, toJson } from "../json/write-json.js";
import { answerError, excerpt } from "../transport/answer-error.js";
import { type Answer, Transport } from "../transport/transport.js";

/** Whether a POST may be sent twice: it may when it only reads. */
export type Effect = "reads" | "changes";

/** A server and how to talk JSON to it: the ground on which the calls of the client stand. */
export abstract class Endpoint {
  protected readonly transport: Transport;
  protected readonly options: ClientOptions;

  /**
   * @param url where the server is: `localhost:8000`, `https://example.org/triton`
   * @throws TritonError INVALID_ARG for what is no HTTP address.
   */
  constructor(url: string, options: ClientOptions = {}) {
    this.transport = new Transport(url, options);
    this.options = options;
  }

  /** True for 200, false for the statuses by which a server says that it, or a model, is not ready. */
  protected async probe(path: string, call: CallOptions): Promise<boolean> {
    const outgoing = { method: "GET", path, idempotent: true } as const;
    const { status, headers, body } = await this.transport.send(outgoing, call);
    if (status === 200) return true;
    if (status === 400 || status === 404 || status === 503) return false;
    throw answerError(status, headers, body);
  }

  protected async get<T>(path: string, call: CallOptions): Promise<T> {
    return jsonOf(await this.transport.request({ method: "GET", path, idempotent: true }, call)) as T;
  }

  protected async post(path: string, json: JsonSource, effect: Effect, call: CallOptions): Promise<Answer> {
    const headers = { "content-type": "application/json" };
    const idempotent = effect === "reads";
    return this.transport.request({ method: "POST", path, headers, body: toJson(json), idempotent }, call);
  }
}

/** The JSON of an answer. */
export function jsonOf({ body }: Answer): JsonValue {
  const text = new TextDecoder().decode(body);
  try {
    return parseJson(text);
  } catch (cause) {
    throw new TritonError("INTERNAL", `cannot read the server's answer: expected JSON${excerpt(text)}`, {
      reason: "INVALID_ANSWER",
      cause,
    });
  }
}
