import { TritonError } from "@tritonjs/protocol";
import type { Effect } from "../../call/carrier.js";
import { answerError, excerpt } from "../carrier/answer-error.js";
import { HttpCalls } from "../carrier/http-calls.js";
import type { HttpAnswer } from "../carrier/http-carrier.js";
import type { CallOptions, ClientOptions } from "../client-options.js";
import { type AnswerJson, parseAnswerJson } from "../json/parse-json.js";
import { type JsonSource, toJson } from "../json/write-json.js";

/** The base class of the client's calls: the server, and how to exchange JSON with it. */
export abstract class HttpEndpoint {
  protected readonly calls: HttpCalls;
  protected readonly options: ClientOptions;

  /**
   * @param url address of the server: `localhost:8000`, `https://example.org/triton`; or several servers: a list of
   * addresses, or `dns://name:8000` for all addresses of a name
   * @throws TritonError INVALID_ARG for an invalid HTTP address.
   */
  constructor(url: string | readonly string[], options: ClientOptions = {}) {
    this.calls = new HttpCalls(url, options);
    this.options = options;
  }

  /** True for 200; false for the statuses of a server or a model that is not ready. */
  protected async probe(path: string, call: CallOptions): Promise<boolean> {
    const outgoing = { method: "GET", path, idempotent: true } as const;
    const { status, headers, body } = await this.calls.send(outgoing, call);
    if (status === 200) return true;
    if (status === 400 || status === 404 || status === 503) return false;
    throw answerError(status, headers, body);
  }

  protected async get<T>(path: string, call: CallOptions): Promise<T> {
    return jsonOf(await this.calls.request({ method: "GET", path, idempotent: true }, call)) as T;
  }

  protected async post(
    path: string,
    json: JsonSource,
    effect: Effect,
    call: CallOptions,
  ): Promise<HttpAnswer> {
    const headers = { "content-type": "application/json" };
    const idempotent = effect === "reads";
    return this.calls.request({ method: "POST", path, headers, body: toJson(json), idempotent }, call);
  }
}

/** The JSON of an answer. */
export function jsonOf({ body }: HttpAnswer): AnswerJson {
  const text = new TextDecoder().decode(body);
  try {
    return parseAnswerJson(text);
  } catch (cause) {
    throw new TritonError("INTERNAL", `cannot read the server's answer: expected JSON${excerpt(text)}`, {
      reason: "INVALID_ANSWER",
      cause,
    });
  }
}
