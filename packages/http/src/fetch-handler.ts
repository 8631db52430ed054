import type { InferenceService } from "@tritonjs/core";
import { type V2Options, v2Handler } from "./v2-handler.js";
import { WebV2Request } from "./web/web-request.js";
import { toWebResponse } from "./web/web-response.js";

/** Answers one request of the web platform. */
export type FetchHandler = (request: Request) => Promise<Response>;

/** What {@link fetchHandler} takes. */
export interface FetchHandlerOptions extends V2Options {
  /** What the paths begin with: `/inference` for `/inference/v2/health/ready`; nothing unless given. */
  readonly prefix?: string;
  /** Hears of internal errors, which clients are not shown; `console.error` unless given. */
  readonly onError?: (error: unknown) => void;
}

/**
 * The v2 routes for any server that speaks the web platform's `Request` and `Response`: Hono, Express or `node:http`
 * by way of `toNodeListener`, and others. `generate_stream` is a stream that begins with the first event; a request
 * whose signal is aborted is cancelled.
 *
 * @param target a `Triton`, or anything else that has a service
 * @example
 * ```ts
 * app.all("/v2/*", (context) => handler(context.req.raw)); // Hono
 * ```
 */
export function fetchHandler(
  target: { readonly service: InferenceService },
  options: FetchHandlerOptions = {},
): FetchHandler {
  const { prefix = "", onError = console.error } = options;
  const handler = v2Handler(target.service, options);
  return async (request) => toWebResponse(await handler(new WebV2Request(request, prefix, onError)));
}
