import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { assertOptions, onAbort, optionTypes } from "@tritonjs/protocol";
import { type RequestShare, type Served, serviceOf } from "@tritonjs/server";
import { BodyBuffer, ClientGone, firstHeader, type V2Request } from "../exchange/request.js";
import { byteLength, isWhole, joined, type V2Response } from "../exchange/response.js";
import { V2_OPTION_TYPES, type V2Handler, type V2Options, v2Handler } from "../routes/v2-handler.js";
import { type CorsOptions, listedOrigins, withCors } from "./cors.js";

/** Answers one request of the web platform. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** Options of {@link fetchHandler}. */
export interface FetchHandlerOptions extends V2Options {
  /** Prefix of the paths: `/inference` for `/inference/v2/health/ready`; none unless given. */
  readonly prefix?: string;
  /** Receives internal errors, which clients do not see; `console.error` unless given. */
  readonly onError?: (error: unknown) => void;
  /** Lets pages of other origins use the routes, unless the surrounding server does that; none unless given. */
  readonly cors?: CorsOptions;
}

const FETCH_OPTION_TYPES = {
  ...optionTypes<Omit<FetchHandlerOptions, keyof V2Options>>({
    prefix: "string",
    onError: "function",
    cors: "object",
  }),
  ...V2_OPTION_TYPES,
};

/**
 * The v2 routes for any server with the web platform's `Request` and `Response`: Hono; Express and `node:http` through
 * `toNodeListener`; and others. The body of `generate_stream` begins with the first event. A request is cancelled when
 * its signal aborts.
 *
 * @param target a `Triton`, or any other object with a service
 * @throws TritonError INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * app.all("/v2/*", (context) => handler(context.req.raw)); // Hono
 * ```
 */
export function fetchHandler(target: Served, options: FetchHandlerOptions = {}): FetchHandler {
  assertOptions("fetchHandler()", options, FETCH_OPTION_TYPES);
  const { prefix = "", onError = console.error } = options;
  const routes = v2Handler(
    serviceOf(target),
    { maxInputSizeName: "fetchHandler(triton, { maxInputSize })", ...options },
    listedOrigins(options.cors),
  );
  return webHandler(withCors(routes, options.cors), prefix, onError);
}

/**
 * Puts a handler on the web platform's `Request` and `Response`.
 *
 * @param prefix prefix of all paths
 * @param onError receives internal errors, which clients do not see
 */
export function webHandler(
  handler: V2Handler,
  prefix: string,
  onError: (error: unknown) => void,
): FetchHandler {
  return async (request) => toWebResponse(await handler(new WebV2Request(request, prefix, onError)));
}

/** Workers at the edge would compress a body once more whose headers say that it is compressed. */
const AS_IT_IS = { encodeBody: "manual" };

/** The status of an answer to a client that has left. */
const CLIENT_CLOSED_REQUEST = 499;

function toWebResponse(response: V2Response | undefined): Response {
  if (response === undefined) return new Response(null, { status: CLIENT_CLOSED_REQUEST });
  const { status } = response;
  const body = isWhole(response.body) ? (joined(response.body) ?? response.body) : response.body;
  const headers = new Headers(response.headers);
  if (body instanceof Uint8Array) {
    headers.set("content-length", String(body.length));
    return new Response(body as Uint8Array<ArrayBuffer>, { status, headers, ...AS_IT_IS });
  }
  if (isWhole(body)) {
    headers.set("content-length", String(byteLength(body)));
    return new Response(toStream(body[Symbol.iterator]()), { status, headers, ...AS_IT_IS });
  }
  return new Response(toStream(body[Symbol.asyncIterator]()), { status, headers, ...AS_IT_IS });
}

function toStream(
  pieces: Iterator<Uint8Array> | AsyncIterator<Uint8Array>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value as Uint8Array<ArrayBuffer>);
    },
    async cancel() {
      await pieces.return?.();
    },
  });
}

/** Facts of a request that Node's server knows, and for which the web platform has no place. */
interface NodeSide {
  /** Address of the peer. */
  readonly remoteAddress: string | undefined;
  /** `Access-Control-Allow-Origin`, where the application has already put it into the answer. */
  readonly grantedOrigin: string | undefined;
}

const nodeSides = new WeakMap<Request, NodeSide>();

const NO_BYTES = new Uint8Array(0);

/** A request of the web platform. Its header names are in lower case, and dots in its path are already resolved. */
class WebV2Request implements V2Request {
  readonly ownsBody = true;
  readonly method: string;
  readonly path: string;
  readonly report: (error: unknown) => void;
  #rawHeaders: readonly string[] | undefined;

  constructor(
    private readonly request: Request,
    prefix: string,
    report: (error: unknown) => void,
  ) {
    this.method = request.method;
    this.path = pathOf(request.url, prefix);
    this.report = report;
  }

  get rawHeaders(): readonly string[] {
    this.#rawHeaders ??= [...this.request.headers].flat();
    return this.#rawHeaders;
  }

  get scheme(): "http" | "https" {
    return this.request.url.startsWith("https:") ? "https" : "http";
  }

  get remoteAddress(): string | undefined {
    return nodeSides.get(this.request)?.remoteAddress;
  }

  get grantedOrigin(): string | undefined {
    return nodeSides.get(this.request)?.grantedOrigin;
  }

  header(name: string): string | undefined {
    return firstHeader(this, name);
  }

  get gone(): boolean {
    return this.request.signal.aborted;
  }

  async readBody(memory: RequestShare, maxInputSize: number, tensorsAt?: number): Promise<Uint8Array> {
    const { body, headers } = this.request;
    if (body === null) return NO_BYTES;
    const declared = headers.get("content-length");
    const buffer = new BodyBuffer(maxInputSize, declared === null ? undefined : Number(declared), tensorsAt);
    if (declared !== null) memory.expect(Number(declared));
    const reader = body.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read().catch((cause: unknown) => {
          throw new ClientGone(cause);
        });
        if (done) return buffer.bytes();
        memory.take(value.length);
        buffer.add(value);
      }
    } finally {
      // The host owns the connection, and handles the rest of a rejected body.
      reader.releaseLock();
    }
  }

  onGone(listener: () => void): () => void {
    return onAbort(this.request.signal, listener);
  }

  /** The web platform does not report when an answer has been sent. */
  onSent(listener: () => void): void {
    queueMicrotask(listener);
  }
}

function pathOf(url: string, prefix: string): string {
  const from = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.slice(from).search(/[?#]/);
  const path = end < 0 ? url.slice(from) : url.slice(from, from + end);
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

const METHODS_WITHOUT_BODY = new Set(["GET", "HEAD"]);
/** Methods that a `Request` cannot have. */
const FORBIDDEN_METHODS = new Set(["CONNECT", "TRACE", "TRACK"]);

/** A listener for `node:http` and Express. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * Turns a {@link FetchHandler} into a listener of `node:http`, which also fits Express. The request is aborted when its
 * client leaves. A slow client slows the answer down.
 *
 * @example
 * ```ts
 * createServer(toNodeListener(fetchHandler(triton))).listen(8000);
 * ```
 */
export function toNodeListener(handler: FetchHandler): NodeListener {
  return async (incoming, outgoing) => {
    const left = new AbortController();
    outgoing.once("close", () => {
      if (!outgoing.writableFinished) left.abort();
    });
    if (FORBIDDEN_METHODS.has(incoming.method ?? "")) {
      outgoing.writeHead(405).end();
      return;
    }
    try {
      const request = toRequest(incoming, left.signal);
      const { remoteAddress } = incoming.socket;
      const grantedOrigin = outgoing.getHeader("access-control-allow-origin")?.toString();
      nodeSides.set(request, { remoteAddress, grantedOrigin });
      await write(await handler(request), outgoing, left.signal);
    } catch (error) {
      refuse(outgoing, error);
    }
    // Drops the remaining bytes of a rejected body.
    incoming.resume();
  };
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const headers = new Headers();
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i]!, incoming.rawHeaders[i + 1]!);
  }
  const { method = "GET", headers: parsed } = incoming;
  // Express removes the path of the mount from `url`.
  const path = (incoming as { originalUrl?: string }).originalUrl ?? incoming.url ?? "/";
  const url = `http://${hostOf(parsed.host)}${path.startsWith("/") ? path : "/"}`;
  if (METHODS_WITHOUT_BODY.has(method)) return new Request(url, { method, headers, signal });
  const body = toStream(incoming.iterator({ destroyOnReturn: false }));
  const init = { method, headers, signal, body, duplex: "half" };
  return new Request(url, init as RequestInit);
}

/** The host only fills its place in the URL, so an invalid one does no harm. */
function hostOf(header: string | undefined): string {
  return header !== undefined && /^[\w.-]+(?::\d{1,5})?$/.test(header) ? header : "localhost";
}

/** Answers a request that the web platform cannot represent, or ends an answer that broke off. */
function refuse(outgoing: ServerResponse, error: unknown): void {
  if (outgoing.headersSent) outgoing.destroy(error as Error);
  else outgoing.writeHead(400, { "content-type": "application/json" }).end('{"error":"Bad Request"}');
}

async function write(response: Response, outgoing: ServerResponse, left: AbortSignal): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) {
    outgoing.end();
    return;
  }
  try {
    // An error in the loop cancels the body.
    for await (const piece of response.body) {
      if (!outgoing.write(piece)) await once(outgoing, "drain", { signal: left });
    }
    outgoing.end();
  } catch (error) {
    if (!left.aborted) throw error;
  }
}
