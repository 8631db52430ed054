import { checkOptionNames, type InferenceService, keyList } from "@tritonjs/core/frontend";
import { byteLength, isWhole, joined, type V2Response } from "../exchange/response.js";
import { type CorsOptions, listedOrigins, withCors } from "../v2/cors.js";
import { V2_OPTION_KEYS, type V2Handler, type V2Options, v2Handler } from "../v2/v2-handler.js";
import { WebV2Request } from "./web-request.js";

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

const FETCH_OPTION_KEYS = [
  ...keyList<Omit<FetchHandlerOptions, keyof V2Options>>({ prefix: true, onError: true, cors: true }),
  ...V2_OPTION_KEYS,
];

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
export function fetchHandler(
  target: { readonly service: InferenceService },
  options: FetchHandlerOptions = {},
): FetchHandler {
  checkOptionNames("fetchHandler()", options, FETCH_OPTION_KEYS);
  const { prefix = "", onError = console.error } = options;
  const routes = v2Handler(
    target.service,
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

/** The status of an answer to a client that has left. */
const CLIENT_CLOSED_REQUEST = 499;

/** Converts an answer to a response of the web platform. */
function toWebResponse(response: V2Response | undefined): Response {
  if (response === undefined) return new Response(null, { status: CLIENT_CLOSED_REQUEST });
  const { status } = response;
  const body = isWhole(response.body) ? (joined(response.body) ?? response.body) : response.body;
  const headers = new Headers(response.headers);
  if (body instanceof Uint8Array) {
    headers.set("content-length", String(body.length));
    return new Response(body as Uint8Array<ArrayBuffer>, { status, headers });
  }
  if (isWhole(body)) {
    headers.set("content-length", String(byteLength(body)));
    return new Response(toStream(piecesOf(body)), { status, headers });
  }
  return new Response(toStream(body[Symbol.asyncIterator]()), { status, headers });
}

async function* piecesOf(body: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* body;
}

function toStream(pieces: AsyncIterator<Uint8Array>): ReadableStream<Uint8Array<ArrayBuffer>> {
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
