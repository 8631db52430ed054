import { checkOptionNames, type InferenceService } from "@tritonjs/core/frontend";
import {
  type FastifyPluginCallback,
  listensOnLoopback,
  mountHandler,
  withAllowedHosts,
} from "@tritonjs/http/frontend";
import { requestFaultBody } from "./errors/error-answer.js";
import { OPENAI_OPTION_KEYS, type OpenAiEndpointOptions, openAiHandler } from "./openai-handler.js";
import { ROUTE_PATTERNS } from "./routes/index.js";

/** Options of {@link openAiPlugin}. */
export type OpenAiPluginOptions = OpenAiEndpointOptions & {
  /** The `Triton` whose models answer, or any other object with a service. */
  readonly triton: { readonly service: InferenceService };
};

/** Options of the plugin, and those of fastify's `register`. */
const KEYS = ["triton", "prefix", "logLevel", "logSerializers", ...OPENAI_OPTION_KEYS];

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
  checkOptionNames("openAiPlugin", options, KEYS);
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
