import { checkOptionNames, type InferenceService, keyList } from "@tritonjs/core/frontend";
import { type FetchHandler, webHandler } from "@tritonjs/http/frontend";
import { OPENAI_OPTION_KEYS, type OpenAiEndpointOptions, openAiHandler } from "./openai-handler.js";

/** Options of {@link openAiFetchHandler}. */
export interface OpenAiFetchHandlerOptions extends OpenAiEndpointOptions {
  /** Prefix of the paths: `/llm` for `/llm/v1/models`; none unless given. */
  readonly prefix?: string;
  /** Receives internal errors, which clients do not see; `console.error` unless given. */
  readonly onError?: (error: unknown) => void;
}

const KEYS = [
  ...keyList<Omit<OpenAiFetchHandlerOptions, keyof OpenAiEndpointOptions>>({ prefix: true, onError: true }),
  ...OPENAI_OPTION_KEYS,
];

/**
 * The OpenAI endpoints for any server with the web platform's `Request` and `Response`: Hono, Next, and, through
 * `toNodeListener` of `@tritonjs/http`, Express. A generation is cancelled when the signal of its request aborts, or
 * the body of its answer is cancelled.
 *
 * @param target a `Triton`, or any other object with a service
 * @throws TritonError INVALID_ARG for an unknown option or a wrong value.
 * @example
 * ```ts
 * const handler = openAiFetchHandler(triton);
 * app.all("/v1/*", (context) => handler(context.req.raw)); // Hono
 * ```
 */
export function openAiFetchHandler(
  target: { readonly service: InferenceService },
  options: OpenAiFetchHandlerOptions = {},
): FetchHandler {
  checkOptionNames("openAiFetchHandler()", options, KEYS);
  const { prefix = "", onError = console.error, ...endpoints } = options;
  return webHandler(openAiHandler(target.service, endpoints), prefix, onError);
}
