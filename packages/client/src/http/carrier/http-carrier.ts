import type { Attempt, Carrier, OutgoingCall } from "../../call/carrier.js";
import type { CallDeadline } from "../../call/deadline.js";
import { clientHeaders, invalidHeader } from "../../options/client-options.js";
import { ACCESS_TOKEN_HEADER, type CallOptions, type ClientOptions, type Fetch } from "../client-options.js";
import { serverUrl } from "../paths.js";
import { decoded } from "./compression.js";
import { fetchIsInstrumented } from "./fetch-instrumentation.js";
import { networkError, wasNeverSent } from "./network-error.js";
import { retryAfterOf } from "./retry-after.js";

/** A request over HTTP. */
export interface HttpRequest extends OutgoingCall {
  readonly method: "GET" | "POST";
  /** Relative to the address of the server. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** The headers and the query of the call. */
  readonly call: Pick<CallOptions, "headers" | "query">;
  /** True leaves the body of an answer with status 200 unread. */
  readonly streamed?: boolean;
}

/** An answer over HTTP. */
export interface HttpAnswer {
  /** Address of the server that answered. */
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  /** The whole body; empty when it is left unread. */
  readonly body: Uint8Array<ArrayBuffer>;
  /** The unread body. */
  readonly stream: ReadableStream<Uint8Array> | null;
}

/** Answers are compressed only on request: for tensors it seldom pays. */
const NO_COMPRESSION = { "accept-encoding": "identity" };

const NO_BYTES = new Uint8Array(0);

/** Sends requests with `fetch`. */
export class HttpCarrier implements Carrier<HttpRequest, HttpAnswer> {
  readonly #url: string;
  readonly #headers: () => Readonly<Record<string, string>>;
  readonly #fetch: Fetch;

  constructor(url: string, options: ClientOptions) {
    this.#url = serverUrl(url);
    this.#headers = clientHeaders(options, ACCESS_TOKEN_HEADER, fetchIsInstrumented);
    // In browsers, `fetch` fails when it is called as a method.
    this.#fetch = options.fetch ?? ((address, init) => globalThis.fetch(address, init));
  }

  async attempt(request: HttpRequest, { signal }: CallDeadline): Promise<Attempt<HttpAnswer>> {
    const [address, init] = this.#toFetch(request, signal);
    try {
      const answer = await read(await this.#fetch(address, init), request.streamed === true, this.#url);
      // A proxy answers 502 when its connection to the server ended before the server's answer.
      if (answer.status === 502) return { answer, failure: "lost" };
      if (answer.status !== 503) return { answer };
      return { answer, failure: "unavailable", retryAfterMs: retryAfterOf(answer.headers, Date.now()) };
    } catch (thrown) {
      return { error: networkError(thrown, this.#url), failure: wasNeverSent(thrown) ? "not-sent" : "lost" };
    }
  }

  /** `fetch` owns the connections. */
  close(): void {}

  #toFetch(request: HttpRequest, signal: AbortSignal): [string, RequestInit] {
    const { method, path, body, call } = request;
    const query = call.query === undefined ? "" : `?${new URLSearchParams(call.query)}`;
    const init: RequestInit = {
      method,
      headers: mergedHeaders(NO_COMPRESSION, this.#headers(), call.headers, request.headers),
      // A redirect could send the access token to another server.
      redirect: "manual",
      signal,
      ...(body !== undefined && { body }),
    };
    return [`${this.#url}${path}${query}`, init];
  }
}

async function read(response: Response, streamed: boolean, url: string): Promise<HttpAnswer> {
  const { status, headers } = response;
  if (streamed && status === 200) return { url, status, headers, body: NO_BYTES, stream: response.body };
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { url, status, headers, body: await decoded(bytes, headers.get("content-encoding")), stream: null };
}

/** Merges headers without regard to case; later ones override earlier ones. */
function mergedHeaders(...all: readonly (Readonly<Record<string, string>> | undefined)[]): Headers {
  const merged = new Headers();
  try {
    for (const headers of all) {
      for (const [name, value] of Object.entries(headers ?? {})) merged.set(name, value);
    }
  } catch (cause) {
    throw invalidHeader(cause);
  }
  return merged;
}
