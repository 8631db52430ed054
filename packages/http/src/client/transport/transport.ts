import { ACCESS_TOKEN_HEADER, type CallOptions, type ClientOptions, type Fetch } from "../client-options.js";
import {
  DEFAULT_TIMEOUT_MS,
  Deadline,
  type Failure,
  pause,
  type RetryPolicy,
  retryDelay,
  retryPolicy,
  TritonError,
} from "../core.js";
import { serverUrl } from "../paths.js";
import { answerError } from "./answer-error.js";
import { decoded } from "./compression.js";
import { networkError, wasNeverSent } from "./network-error.js";
import { readChunks } from "./read-chunks.js";
import { retryAfterOf } from "./retry-after.js";

/** A request, before the client's own headers are added. */
export interface Outgoing {
  readonly method: "GET" | "POST";
  /** Relative to the address of the server. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** Whether sending it twice does no harm. */
  readonly idempotent: boolean;
}

/** An answer, read in full. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** Sends requests: addresses, headers, time limits, retries, and what `fetch` throws. */
export class Transport {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: Fetch;
  readonly #timeoutMs: number;
  readonly #retry: RetryPolicy;
  readonly #closed = new AbortController();

  constructor(url: string, options: ClientOptions) {
    const { accessToken, headers } = options;
    this.#url = serverUrl(url);
    this.#headers = { ...headers, ...(accessToken !== undefined && { [ACCESS_TOKEN_HEADER]: accessToken }) };
    // A `fetch` that is called as a method refuses to work in browsers.
    this.#fetch = options.fetch ?? ((address, init) => globalThis.fetch(address, init));
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.#retry = retryPolicy(options);
  }

  /** The answer, whatever its status. */
  async send(outgoing: Outgoing, call: CallOptions): Promise<Answer> {
    const deadline = this.#deadline(call);
    try {
      return await this.#attempt(outgoing, call, deadline, async (response) => {
        const bytes = new Uint8Array(await response.arrayBuffer());
        const body = await decoded(bytes, response.headers.get("content-encoding"));
        return { status: response.status, headers: response.headers, body };
      });
    } finally {
      deadline.end();
    }
  }

  /** The answer of a request that succeeded; throws the server's error otherwise. */
  async request(outgoing: Outgoing, call: CallOptions): Promise<Answer> {
    const answer = await this.send(outgoing, call);
    if (answer.status !== 200) throw answerError(answer.status, answer.headers, answer.body);
    return answer;
  }

  /**
   * The body of an answer as it comes: `timeoutMs` then limits the time for each part of it. Has to be read; leaving
   * the loop closes the connection.
   *
   * @throws TritonError the server's error, INTERNAL for a body of another type.
   */
  async stream(
    outgoing: Outgoing,
    type: string,
    call: CallOptions,
  ): Promise<AsyncGenerator<Uint8Array, void, void>> {
    const deadline = this.#deadline(call);
    try {
      const response = await this.#attempt(outgoing, call, deadline, async (opened) => {
        if (opened.status !== 200) {
          const body = new Uint8Array(await opened.arrayBuffer());
          throw answerError(opened.status, opened.headers, body);
        }
        const got = opened.headers.get("content-type") ?? "none";
        if (got.split(";")[0]!.trim().toLowerCase() === type) return opened;
        await opened.body?.cancel();
        throw new TritonError("INTERNAL", `the server's answer: expected ${type}, got ${got}`, {
          reason: "INVALID_ANSWER",
        });
      });
      return this.#chunks(response, deadline);
    } catch (thrown) {
      deadline.end();
      throw thrown;
    }
  }

  /** Ends the calls in flight with CANCELLED. Later ones fail with UNAVAILABLE. */
  close(): void {
    this.#closed.abort(
      new TritonError("CANCELLED", "the client was closed", { reason: "CLIENT_CLOSED_MEANWHILE" }),
    );
  }

  #deadline({ timeoutMs, signal }: CallOptions): Deadline {
    if (this.#closed.signal.aborted)
      throw new TritonError("UNAVAILABLE", "the client is closed", { reason: "CLIENT_CLOSED" });
    return new Deadline(timeoutMs ?? this.#timeoutMs, signal, this.#closed.signal);
  }

  async *#chunks(response: Response, deadline: Deadline): AsyncGenerator<Uint8Array, void, void> {
    try {
      for await (const chunk of readChunks(response.body)) {
        deadline.hold();
        yield chunk;
        deadline.restart();
      }
    } catch (thrown) {
      throw deadline.fault ?? networkError(thrown, this.#url);
    } finally {
      deadline.end();
    }
  }

  /** Tries until there is an answer that is not to be tried again. `read` is part of an attempt. */
  async #attempt<T>(
    outgoing: Outgoing,
    call: CallOptions,
    deadline: Deadline,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const [address, init] = this.#toFetch(outgoing, call, deadline.signal);
    for (let attempt = 0; ; attempt++) {
      const delayAfter = (failure: Failure, retryAfterMs?: number) =>
        retryDelay(failure, attempt, outgoing.idempotent, this.#retry, {
          retryAfterMs,
          leftMs: deadline.leftMs,
        });
      let delay: number | undefined;
      try {
        if (deadline.fault !== undefined) throw deadline.fault;
        const response = await this.#fetch(address, init);
        if (response.status === 503)
          delay = delayAfter("unavailable", retryAfterOf(response.headers, Date.now()));
        if (delay === undefined) return await read(response);
        // Read to its end, the connection can be used again.
        await response.arrayBuffer();
      } catch (thrown) {
        if (deadline.fault !== undefined) throw deadline.fault;
        if (!TritonError.is(thrown)) delay = delayAfter(wasNeverSent(thrown) ? "not-sent" : "lost");
        if (delay === undefined) throw networkError(thrown, this.#url);
      }
      await pause(delay, deadline.signal);
    }
  }

  #toFetch(outgoing: Outgoing, call: CallOptions, signal: AbortSignal): [string, RequestInit] {
    const { method, path, body } = outgoing;
    const query = call.query === undefined ? "" : `?${new URLSearchParams(call.query)}`;
    const init: RequestInit = {
      method,
      headers: mergedHeaders(NO_COMPRESSION, this.#headers, call.headers, outgoing.headers),
      // A redirect could lead the access token elsewhere.
      redirect: "manual",
      signal,
      ...(body !== undefined && { body }),
    };
    return [`${this.#url}${path}${query}`, init];
  }
}

/** Answers are not compressed unless asked for: tensors are seldom worth the time. */
const NO_COMPRESSION = { "accept-encoding": "identity" };

/** Headers without regard to case, the later before the earlier ones. */
function mergedHeaders(...all: readonly (Readonly<Record<string, string>> | undefined)[]): Headers {
  const merged = new Headers();
  try {
    for (const headers of all) {
      for (const [name, value] of Object.entries(headers ?? {})) merged.set(name, value);
    }
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `invalid header: ${(cause as Error).message}`, {
      reason: "INVALID_OPTION",
      cause,
    });
  }
  return merged;
}
