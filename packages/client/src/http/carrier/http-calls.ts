import { TritonError } from "@tritonjs/protocol";
import { Caller } from "../../call/caller.js";
import type { CallDeadline } from "../../call/deadline.js";
import { rememberFailure } from "../../call/failed-attempt.js";
import type { CallOptions, ClientOptions } from "../client-options.js";
import { answerError } from "./answer-error.js";
import type { HttpAnswer, HttpRequest } from "./http-carrier.js";
import { openHttpCarrier } from "./http-servers.js";
import { networkError } from "./network-error.js";

/** A request without the members that its call adds. */
export type CallRequest = Omit<HttpRequest, "call" | "streamed">;

/** Makes calls over HTTP, with complete or streamed answers. */
export class HttpCalls {
  readonly #caller: Caller<HttpRequest, HttpAnswer>;

  constructor(urls: string | readonly string[], options: ClientOptions) {
    this.#caller = new Caller(openHttpCarrier(urls, options), options);
  }

  /** Returns the answer, whatever its status. */
  send(request: CallRequest, call: CallOptions): Promise<HttpAnswer> {
    return this.#caller.call({ ...request, call }, call);
  }

  /** Returns the answer to a successful request; throws the server's error otherwise. */
  async request(request: CallRequest, call: CallOptions): Promise<HttpAnswer> {
    return succeeded(await this.send(request, call));
  }

  /**
   * Yields the body of an answer as it arrives; `timeoutMs` then limits the time for each part. The caller must read
   * it: leaving the loop closes the connection.
   *
   * @throws TritonError the server's error, INTERNAL for a body of another type.
   */
  async stream(
    request: CallRequest,
    type: string,
    call: CallOptions,
  ): Promise<AsyncGenerator<Uint8Array, void, void>> {
    const deadline = this.#caller.deadline(call);
    try {
      const answer = await this.#caller.attempt({ ...request, call, streamed: true }, deadline);
      const { url, headers, stream } = succeeded(answer);
      const got = headers.get("content-type") ?? "none";
      if (got.split(";")[0]!.trim().toLowerCase() === type) return chunksOf(stream, url, deadline);
      await stream?.cancel();
      throw new TritonError("INTERNAL", `the server's answer: expected ${type}, got ${got}`, {
        reason: "INVALID_ANSWER",
      });
    } catch (thrown) {
      deadline.end();
      throw thrown;
    }
  }

  /** Ends the calls in flight with CANCELLED. Later calls fail with UNAVAILABLE. */
  close(): void {
    this.#caller.close();
  }
}

/** The parts of a body. The time limit applies to each part, and rests while the caller works on one. */
async function* chunksOf(
  stream: ReadableStream<Uint8Array> | null,
  url: string,
  deadline: CallDeadline,
): AsyncGenerator<Uint8Array, void, void> {
  try {
    for await (const chunk of readChunks(stream)) {
      deadline.hold();
      yield chunk;
      deadline.restart();
    }
  } catch (thrown) {
    throw deadline.fault ?? networkError(thrown, url);
  } finally {
    deadline.end();
  }
}

function succeeded(answer: HttpAnswer): HttpAnswer {
  const { status, headers, body } = answer;
  if (status === 200) return answer;
  throw rememberFailure(answerError(status, headers, body), status === 503 ? "unavailable" : undefined);
}

/** The chunks of a body. Not every browser can iterate over a stream. */
async function* readChunks(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array, void, void> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // Drops the unread rest: the connection closes, which tells the server. After the end this has no effect.
    reader.cancel().catch(() => {});
  }
}
