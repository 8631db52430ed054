import {
  type FastifyPluginCallback,
  type FetchHandler,
  HTTP_LIMIT_TYPES,
  type HttpLimits,
  ListeningFrontend,
  listensOnLoopback,
  mountHandler,
  webHandler,
  withAllowedHosts,
} from "@tritonjs/http/frontend";
import type { OptionTypes } from "@tritonjs/protocol";
import { assertOptions, optionTypes } from "@tritonjs/protocol";
import { type Served, type ServiceFrontend, serviceOf, type TlsOptions } from "@tritonjs/server";
import { requestFaultBody } from "./openai-error.js";
import {
  OPENAI_OPTION_TYPES,
  type OpenAiEndpointOptions,
  openAiHandler,
  ROUTE_PATTERNS,
} from "./openai-handler.js";

export type { ChatTemplateSettings } from "./chat-templates.js";
export type { OpenAiGroup } from "./openai-access.js";

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

const OPENAI_TYPES = {
  ...optionTypes<Omit<OpenAiOptions, keyof OpenAiEndpointOptions>>({
    port: "number",
    address: "string",
    reusePort: "boolean",
    tls: "object",
    limits: "object",
  }),
  ...OPENAI_OPTION_TYPES,
};

/** Default of the option `port`, that of Triton's OpenAI frontend. */
const PORT = 9000;

/**
 * The OpenAI endpoints on a port of their own: chat completions, completions, responses, embeddings, transcriptions and
 * models, over all models of the server that take and return text or embeddings, or transcribe files.
 *
 * @throws TritonError INVALID_ARG for an unknown option or a wrong value.
 * @example
 * ```ts
 * await triton.serve({ frontends: [http(), openai({ port: 9000, apiKeys: [process.env.OPENAI_KEY] })] });
 * ```
 */
export function openai(options: OpenAiOptions = {}): ServiceFrontend {
  assertOptions("openai()", options, OPENAI_TYPES);
  assertOptions("openai({ limits })", options.limits ?? {}, HTTP_LIMIT_TYPES);
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
  readonly triton: Served;
};

/** Options of the plugin, and those of fastify's `register`. */
const PLUGIN_TYPES: OptionTypes = {
  triton: "object",
  prefix: "string",
  logLevel: "any",
  logSerializers: "any",
  ...OPENAI_OPTION_TYPES,
};

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
  assertOptions("openAiPlugin", options, PLUGIN_TYPES);
  const service = serviceOf(options.triton);
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

const FETCH_HANDLER_TYPES = {
  ...optionTypes<Omit<OpenAiFetchHandlerOptions, keyof OpenAiEndpointOptions>>({
    prefix: "string",
    onError: "function",
  }),
  ...OPENAI_OPTION_TYPES,
};

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
export function openAiFetchHandler(target: Served, options: OpenAiFetchHandlerOptions = {}): FetchHandler {
  assertOptions("openAiFetchHandler()", options, FETCH_HANDLER_TYPES);
  const { prefix = "", onError = console.error, ...endpoints } = options;
  return webHandler(openAiHandler(serviceOf(target), endpoints), prefix, onError);
}
