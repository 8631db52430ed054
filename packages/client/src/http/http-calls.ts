import { isJsonObject, parseAnswerJson, type TritonError } from "@tritonjs/protocol";
import { answeredError, Caller, invalidAnswer, rememberFailure } from "../caller.js";
import type { CallDeadline } from "../deadline.js";
import type { CallOptions, ClientOptions } from "./client-options.js";
import {
  type HttpAnswer,
  type HttpRequest,
  networkError,
  openHttpCarrier,
  retryAfterOf,
} from "./http-carrier.js";

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
      throw invalidAnswer(`the server's answer: expected ${type}, got ${got}`);
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

type ErrorCode = TritonError["code"];

const codes: Readonly<Record<number, ErrorCode>> = {
  // Restricted routes: over gRPC they answer UNAVAILABLE.
  401: "UNAVAILABLE",
  403: "UNAVAILABLE",
  404: "NOT_FOUND",
  405: "UNSUPPORTED",
  408: "UNAVAILABLE",
  409: "ALREADY_EXISTS",
  429: "UNAVAILABLE",
  499: "CANCELLED",
  501: "UNSUPPORTED",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "UNAVAILABLE",
};

/** Reasons that a status gives. */
const reasons: Readonly<Record<number, "UNAUTHENTICATED" | "PERMISSION_DENIED">> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
};

const EXCERPT_LENGTH = 200;

/** The `cause` of an error that a server answered: its HTTP status. */
export class HttpStatusError extends Error {
  override readonly name = "HttpStatusError";

  constructor(readonly status: number) {
    super(`HTTP status ${status}`);
  }
}

/** The error code of a status. Triton answers 400 also for UNKNOWN, ALREADY_EXISTS and CANCELLED. */
function codeFromHttpStatus(status: number): ErrorCode {
  const code = codes[status];
  if (code !== undefined) return code;
  if (status >= 400 && status < 500) return "INVALID_ARG";
  return status >= 500 ? "INTERNAL" : "UNKNOWN";
}

/** Makes the error of an answer, with the server's text if there is one, and with `retryAfterMs`. */
export function answerError(status: number, headers: Headers, body: Uint8Array): TritonError {
  const text = new TextDecoder().decode(body);
  const message = serverMessage(text) ?? `HTTP status ${status}${excerpt(text)}`;
  const code = codeFromHttpStatus(status);
  const retryAfterMs = code === "UNAVAILABLE" ? retryAfterOf(headers, Date.now()) : undefined;
  const cause = new HttpStatusError(status);
  const options = { cause, ...(retryAfterMs !== undefined && { retryAfterMs }) };
  return answeredError(code, message, options, reasons[status]);
}

/** The text of an error in JSON or in a server-sent event. */
function serverMessage(text: string): string | undefined {
  try {
    const json = parseAnswerJson(text.replace(/^data:/, ""));
    const error = isJsonObject(json) ? json.error : undefined;
    return typeof error === "string" ? error : undefined;
  } catch {
    return undefined;
  }
}

/** The beginning of an unexpected body on one line, to be appended to a message. */
export function excerpt(text: string): string {
  const line = text
    .slice(0, EXCERPT_LENGTH * 4)
    .replace(/[\s\p{C}]+/gu, " ")
    .trim();
  if (line === "") return "";
  return line.length > EXCERPT_LENGTH ? `: ${line.slice(0, EXCERPT_LENGTH)}...` : `: ${line}`;
}
