import { TritonError } from "@tritonjs/protocol";
import type { Attempt, Carrier, OutgoingCall } from "../caller.js";
import type { CallDeadline } from "../deadline.js";
import { type Compression, clientHeaders, invalidHeader } from "../options.js";

import { openServers } from "../several-servers.js";
import { ACCESS_TOKEN_HEADER, type CallOptions, type ClientOptions, type Fetch } from "./client-options.js";

export interface HttpRequest extends OutgoingCall {
  readonly method: "GET" | "POST";
  /** Relative to the address of the server. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** The headers and the query of the call. */
  readonly call: Pick<CallOptions, "headers" | "query">;
  /** True if the time limit is that of the whole answer, so that a server with deadlines may know it. */
  readonly tellsLimit?: boolean;
  /** True leaves the body of an answer with status 200 unread. */
  readonly streamed?: boolean;
}

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

/** Header with the milliseconds that the client waits for the answer. Models with deadlines look at it. */
const TIMEOUT_HEADER = "tritonjs-timeout-ms";

/** Answers are compressed only on request: for tensors it seldom pays. */
const NO_COMPRESSION = { "accept-encoding": "identity" };

const NO_BYTES = new Uint8Array(0);

class HttpCarrier implements Carrier<HttpRequest, HttpAnswer> {
  readonly #url: string;
  readonly #headers: () => Readonly<Record<string, string>>;
  readonly #fetch: Fetch;

  constructor(url: string, options: ClientOptions) {
    this.#url = serverUrl(url);
    this.#headers = clientHeaders(options, ACCESS_TOKEN_HEADER, fetchIsInstrumented);
    // In browsers, `fetch` fails when it is called as a method.
    this.#fetch = options.fetch ?? ((address, init) => globalThis.fetch(address, init));
  }

  async attempt(request: HttpRequest, deadline: CallDeadline): Promise<Attempt<HttpAnswer>> {
    const [address, init] = this.#toFetch(request, deadline);
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

  #toFetch(request: HttpRequest, { signal, givenMs }: CallDeadline): [string, RequestInit] {
    const { method, path, body, call } = request;
    const limit =
      request.tellsLimit && givenMs !== undefined
        ? { [TIMEOUT_HEADER]: String(Math.ceil(givenMs)) }
        : undefined;
    const query = call.query === undefined ? "" : `?${new URLSearchParams(call.query)}`;
    const init: RequestInit = {
      method,
      headers: mergedHeaders(NO_COMPRESSION, limit, this.#headers(), call.headers, request.headers),
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

export function openHttpCarrier(
  urls: string | readonly string[],
  options: ClientOptions,
): Carrier<HttpRequest, HttpAnswer> {
  const open = (url: string) => new HttpCarrier(url, options);
  return openServers<HttpRequest, HttpAnswer, HttpCarrier>(urls, options, DEFAULT_HTTP_PORT, open);
}

/** Errors of name resolution and of connecting, after which nothing was sent. */
const BEFORE_SENDING: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENETDOWN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** True when the error of `fetch` shows that there was no connection. A browser does not tell. */
function wasNeverSent(thrown: unknown): boolean {
  return BEFORE_SENDING.has(codeOf(thrown) ?? "");
}

/** The error of a request without an answer. */
export function networkError(thrown: unknown, url: string): TritonError {
  if (TritonError.is(thrown)) return thrown;
  const { origin } = new URL(url);
  const what = wasNeverSent(thrown) ? "cannot connect to" : "incomplete answer from";
  return new TritonError("UNAVAILABLE", `${what} ${origin}: ${reasonOf(thrown)}`, {
    reason: "CONNECTION_FAILED",
    cause: thrown,
  });
}

/** The innermost code of an error and its causes. */
function codeOf(thrown: unknown): string | undefined {
  return chain(thrown)
    .map((error) => (error as { code?: unknown }).code)
    .findLast((code) => typeof code === "string");
}

/** The error's code, or the text of the innermost error. */
function reasonOf(thrown: unknown): string {
  const innermost = chain(thrown).at(-1);
  return codeOf(thrown) ?? (innermost instanceof Error ? innermost.message : String(thrown));
}

const MAX_CAUSES = 8;

function chain(thrown: unknown): object[] {
  const errors: object[] = [];
  let error = thrown;
  while (typeof error === "object" && error !== null && errors.length < MAX_CAUSES) {
    errors.push(error);
    error = (error as { cause?: unknown }).cause;
  }
  return errors;
}

export function compressBody(
  bytes: Uint8Array<ArrayBuffer>,
  format: Compression,
): Promise<Uint8Array<ArrayBuffer>> {
  return through(bytes, new CompressionStream(format));
}

/**
 * Decompresses a body if that has not been done yet. `fetch` decompresses it and leaves the header in place.
 * Replacements of `fetch` may not decompress. A decompressed body is JSON, which cannot begin like either format.
 *
 * @throws TypeError for bytes that are not in their format.
 */
async function decoded(
  bytes: Uint8Array<ArrayBuffer>,
  encoding: string | null,
): Promise<Uint8Array<ArrayBuffer>> {
  const format = encoding?.trim().toLowerCase();
  if (format !== "gzip" && format !== "deflate") return bytes;
  return looksLike(format, bytes) ? through(bytes, new DecompressionStream(format)) : bytes;
}

function looksLike(format: Compression, bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes;
  if (format === "gzip") return first === 0x1f && second === 0x8b;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0 && bytes.length > 2;
}

async function through(
  bytes: Uint8Array<ArrayBuffer>,
  transform: CompressionStream | DecompressionStream,
): Promise<Uint8Array<ArrayBuffer>> {
  const stream = new Blob([bytes]).stream().pipeThrough(transform as GenericTransformStream);
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

interface GenericTransformStream {
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly writable: WritableStream<Uint8Array<ArrayBuffer>>;
}

/** The part of Node.js that tells who observes `fetch`. Browsers have none, and Node.js only from version 20.16. */
interface NodeProcess {
  getBuiltinModule?(name: "diagnostics_channel"): { hasSubscribers(channel: string): boolean };
}

/** An instrumentation of undici appends its own headers, and a request with two `traceparent` has no valid one. */
function fetchIsInstrumented(): boolean {
  const { process } = globalThis as { readonly process?: NodeProcess };
  return process?.getBuiltinModule?.("diagnostics_channel").hasSubscribers("undici:request:create") === true;
}

/** Milliseconds after which the server wants a retry, from a number of seconds or a date. */
export function retryAfterOf(headers: Headers, nowMs: number): number | undefined {
  const text = headers.get("retry-after")?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // An HTTP date begins with a weekday. `Date` accepts others too.
  const date = /^[A-Za-z]+,? /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

/** Port of an address that names none. */
const DEFAULT_HTTP_PORT = 8000;

/** Completes an address: `http://localhost:8000/`. Without a scheme it is HTTP, with the default port 8000. */
function serverUrl(url: string): string {
  const bare = !/^[a-z][a-z0-9+.-]*:\/\//i.test(url);
  let parsed: URL;
  try {
    parsed = new URL(bare ? `http://${url}` : url);
  } catch (cause) {
    throw invalidUrl(` '${url}'`, cause);
  }
  const { protocol, username, password } = parsed;
  if (protocol !== "http:" && protocol !== "https:") throw invalidUrl(` '${url}': expected http or https`);
  if (username + password !== "") throw invalidUrl(": it holds credentials; give them as headers");
  if (bare && parsed.port === "" && !/:\d+$/.test(url.split("/")[0]!))
    parsed.port = String(DEFAULT_HTTP_PORT);
  return `${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}/`;
}

function invalidUrl(text: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", `invalid url${text}`, { reason: "INVALID_OPTION", cause });
}

/** The path of an action on a model; the empty action is the model itself. */
export function modelPath(name: string, version: string | number | undefined, action: string): string {
  const parts = ["v2/models", segment("model name", name)];
  if (version !== undefined && version !== "")
    parts.push("versions", segment("model version", String(version)));
  if (action !== "") parts.push(action);
  return parts.join("/");
}

/** The path of an action on system or CUDA shared memory; the empty region means all regions. */
export function sharedMemoryPath(kind: "system" | "cuda", region: string, action: string): string {
  const part = region === "" ? "" : `/region/${segment("region name", region)}`;
  return `v2/${kind}sharedmemory${part}/${action}`;
}

/** Encodes text as one segment of a path. Dots would lead out of the path. */
export function segment(what: string, text: string): string {
  if (text === "" || text === "." || text === "..") {
    throw new TritonError("INVALID_ARG", `invalid ${what} '${text}'`);
  }
  try {
    return encodeURIComponent(text);
  } catch (cause) {
    throw new TritonError("INVALID_ARG", `invalid ${what}: it has an unpaired surrogate`, { cause });
  }
}
