import type { Frontend } from "@tritonjs/core";
import type { InferenceService, TlsOptions } from "@tritonjs/core/frontend";
import { checkOptionNames, keyList } from "@tritonjs/core/internal";
import {
  type FastifyPluginCallback,
  type FetchHandler,
  HTTP_LIMIT_KEYS,
  type HttpLimits,
  ListeningFrontend,
  listensOnLoopback,
  mountHandler,
  webHandler,
  withAllowedHosts,
} from "@tritonjs/http/frontend";
import { requestFaultBody } from "./openai-error.js";
import {
  OPENAI_OPTION_KEYS,
  type OpenAiEndpointOptions,
  openAiHandler,
  ROUTE_PATTERNS,
} from "./openai-handler.js";

export type { ChatTemplateSettings } from "./chat-templates.js";

export type { ApiKey, HeaderRestriction, OpenAiAccessOptions, OpenAiGroup } from "./openai-access.js";
export type { OpenAiEndpointOptions } from "./openai-handler.js";

/** Options of {@link openai}: its address, and how the endpoints answer. */
export interface OpenAiOptions extends OpenAiEndpointOptions {
  /** Port to listen on; 9000 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `localhost` unless given. */
  readonly address?: string;
  /** Lets other processes listen on the port too, from Node 22.12 on; false unless given. */
  readonly reusePort?: boolean;
  /** Encrypts connections, and asks clients for certificates if it has a `ca`; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Limits on the size and the duration of requests. */
  readonly limits?: Partial<HttpLimits>;
}

const OPENAI_KEYS = [
  ...keyList<Omit<OpenAiOptions, keyof OpenAiEndpointOptions>>({
    port: true,
    address: true,
    reusePort: true,
    tls: true,
    limits: true,
  }),
  ...OPENAI_OPTION_KEYS,
];

/** Default of the option `port`, that of Triton's OpenAI frontend. */
const PORT = 9000;

/**
 * The OpenAI endpoints on a port of their own: chat completions, completions, responses, embeddings and models, over
 * all models of the server that take and return text or embeddings.
 *
 * @throws TritonError INVALID_ARG for an unknown option or a wrong value.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), openai({ port: 9000, apiKeys: [process.env.OPENAI_KEY] })] });
 * ```
 */
export function openai(options: OpenAiOptions = {}): Frontend {
  checkOptionNames("openai()", options, OPENAI_KEYS);
  checkOptionNames("openai({ limits })", options.limits ?? {}, HTTP_LIMIT_KEYS);
  const { port = PORT, address = "localhost", reusePort = false, tls, limits, ...endpoints } = options;
  return new ListeningFrontend(
    {
      name: "openai",
      port,
      address,
      reusePort,
      portHint: "openai({ port })",
      clientErrorBody: requestFaultBody,
      ...(tls && { tls }),
      ...(limits && { limits }),
    },
    (service) => openAiHandler(service, endpoints),
  );
}

/** Options of {@link openAiPlugin}. */
export type OpenAiPluginOptions = OpenAiEndpointOptions & {
  /** The `Triton` whose models answer, or any other object with a service. */
  readonly triton: { readonly service: InferenceService };
};

/** Options of the plugin, and those of fastify's `register`. */
const PLUGIN_KEYS = ["triton", "prefix", "logLevel", "logSerializers", ...OPENAI_OPTION_KEYS];

/**
 * The OpenAI endpoints as a fastify plugin, for an existing application and any prefix. The plugin reads request bodies
 * itself, so the application's limits and parsers do not apply to them.
 *
 * @throws TritonError INVALID_ARG for an unknown option or a wrong value.
 * @example
 * ```ts
 * app.register(openAiPlugin, { triton, prefix: "/llm" }); // POST /llm/v1/chat/completions
 * ```
 */
export const openAiPlugin: FastifyPluginCallback<OpenAiPluginOptions> = (app, options, done) => {
  checkOptionNames("openAiPlugin", options, PLUGIN_KEYS);
  const { service } = options.triton;
  const loopback = listensOnLoopback(app);
  const handler = openAiHandler(service, options);
  mountHandler(
    app,
    withAllowedHosts(handler, service.allowedHosts, loopback, requestFaultBody),
    ROUTE_PATTERNS,
  );
  done();
};

/** Options of {@link openAiFetchHandler}. */
export interface OpenAiFetchHandlerOptions extends OpenAiEndpointOptions {
  /** Prefix of the paths: `/llm` for `/llm/v1/models`; none unless given. */
  readonly prefix?: string;
  /** Receives internal errors, which clients do not see; `console.error` unless given. */
  readonly onError?: (error: unknown) => void;
}

const FETCH_HANDLER_KEYS = [
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
  checkOptionNames("openAiFetchHandler()", options, FETCH_HANDLER_KEYS);
  const { prefix = "", onError = console.error, ...endpoints } = options;
  return webHandler(openAiHandler(target.service, endpoints), prefix, onError);
}
