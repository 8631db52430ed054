import { assertOptions, errorFor, optionTypes } from "@tritonjs/protocol";
import type { InferenceService, Restrictions, ServiceFrontend, TlsOptions } from "@tritonjs/server";
import { firstHeader } from "../exchange/request.js";
import { emptyResponse } from "../exchange/response.js";
import { answerErrors, v2Handler } from "../routes/v2-handler.js";
import { type HttpLimits, ListeningFrontend } from "../server/listening-frontend.js";
import { BinaryContentType, RewrittenRequest, readyModels } from "./cloud-request.js";

export { type SageMakerInferenceType, type SageMakerOptions, sageMaker } from "./sagemaker.js";

/** Options of {@link vertexAi}, named after tritonserver's flags and the variables of the platform. */
export interface VertexAiOptions {
  /** Port to listen on: `AIP_HTTP_PORT`; 8080 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `0.0.0.0` unless given, because the platform calls from outside the container. */
  readonly address?: string;
  /** Path of predictions: `AIP_PREDICT_ROUTE`. */
  readonly predictRoute: string;
  /** Path of the health check: `AIP_HEALTH_ROUTE`. */
  readonly healthRoute: string;
  /** Model of requests without a redirect; the only model in service unless given. */
  readonly defaultModel?: string;
  /** Largest tensor of a request in bytes; 64 MiB unless given. */
  readonly maxInputSize?: number;
  /**
   * Groups of routes that require a header. Unless given, predictions and health require none, because the platform
   * passes on no secrets, and redirects require those of the `Triton`'s `security`.
   */
  readonly restrictions?: Restrictions;
  /** Encrypts connections; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Limits on the size and the duration of requests. */
  readonly limits?: Partial<HttpLimits>;
}

const VERTEX_AI_OPTION_TYPES = optionTypes<VertexAiOptions>({
  port: "number",
  address: "string",
  predictRoute: "string",
  healthRoute: "string",
  defaultModel: "string",
  maxInputSize: "number",
  restrictions: "object",
  tls: "object",
  limits: "object",
});

/** Header with the path of another route, without the leading slash. */
const REDIRECT_HEADER = "x-vertex-ai-triton-redirect";
const BINARY = new BinaryContentType("application/vnd.vertex-ai-triton.binary+json", true);

/**
 * The routes of Vertex AI on a port of their own: health, and predictions of a default model. A request with the
 * header `X-Vertex-Ai-Triton-Redirect: v2/models/other/infer` goes to another route of the v2 protocol. Binary tensors
 * have the content type `application/vnd.vertex-ai-triton.binary+json;json-header-size=<bytes of JSON>`. Answers have
 * the header `Inference-Header-Content-Length` too.
 *
 * @throws TritonError INVALID_ARG for an unknown option, and for a route that is missing. `serve()` rejects with
 * INVALID_ARG if there is no single model and no default, or if the default is not in service.
 * @example
 * ```ts
 * const { AIP_PREDICT_ROUTE, AIP_HEALTH_ROUTE } = process.env;
 * await triton.serve({ frontends: [vertexAi({ predictRoute: AIP_PREDICT_ROUTE!, healthRoute: AIP_HEALTH_ROUTE! })] });
 * ```
 */
export function vertexAi(options: VertexAiOptions): ServiceFrontend {
  assertOptions("vertexAi()", options, VERTEX_AI_OPTION_TYPES);
  const { port = 8080, address = "0.0.0.0", tls, limits } = options;
  const predict = routePattern(options.predictRoute, "AIP_PREDICT_ROUTE");
  const health = routePattern(options.healthRoute, "AIP_HEALTH_ROUTE");
  const portHint = "vertexAi({ port })";
  return new ListeningFrontend(
    { name: "vertex-ai", port, address, portHint, tls, limits },
    async (service) => {
      const model = await defaultModel(service, options.defaultModel);
      const { maxInputSize, restrictions } = options;
      const v2 = { metrics: true, maxInputSizeName: "vertexAi({ maxInputSize })", maxInputSize };
      const routes = v2Handler(service, { ...v2, restrictions: restrictions ?? {} });
      // Redirects can name restricted routes.
      const redirected = v2Handler(service, { ...v2, restrictions: restrictions ?? service.restrictions });
      return answerErrors(async (request) => {
        if (health.test(request.path))
          return routes(new RewrittenRequest(request, "GET", "/v2/health/ready"));
        if (!predict.test(request.path)) return emptyResponse(400, "text/plain");
        const redirect = firstHeader(request, REDIRECT_HEADER);
        if (redirect !== undefined && request.method !== "POST") return emptyResponse(405, "text/plain");
        const path =
          redirect === undefined ? `/v2/models/${encodeURIComponent(model)}/infer` : `/${redirect}`;
        const target = redirect === undefined ? { method: request.method } : redirectTo(path);
        if ("refusal" in target) return emptyResponse(target.refusal, "text/plain");
        const answer = redirect === undefined ? routes : redirected;
        const rewritten = new RewrittenRequest(request, target.method, path, BINARY.headersOf(request));
        const response = await answer(rewritten);
        return response && BINARY.typed(response);
      });
    },
  );
}

function routePattern(route: string | undefined, variable: string): RegExp {
  if (route === undefined || route === "") {
    throw errorFor("INVALID_OPTION", `${variable} is not defined for Vertex AI endpoint`);
  }
  try {
    return new RegExp(`^(?:${route})$`);
  } catch (cause) {
    const text = `vertexAi(): ${variable}: expected a path or a regular expression, got '${route}'`;
    throw errorFor("INVALID_OPTION", text, { cause });
  }
}

/** The model of predictions, with Triton's errors. */
async function defaultModel(service: InferenceService, wanted: string | undefined): Promise<string> {
  const { names, only } = await readyModels(service);
  if (wanted !== undefined && wanted !== "") {
    if (names.includes(wanted)) return wanted;
    throw errorFor("INVALID_OPTION", `Expect the default model '${wanted}' is loaded`);
  }
  if (only !== undefined) return only;
  throw errorFor(
    "INVALID_OPTION",
    "Expect the model repository contains only a single model if default model is not specified",
  );
}

/** Decision about a path of the redirect header: the method of its route, or the status of its refusal. */
type Redirect = { readonly method: "GET" | "POST" } | { readonly refusal: 400 | 403 };

const MODEL = `/v2/models/[^/]+(/versions/[0-9]+)?`;

/** Routes that a redirect may name, and routes that it must not name, as in Triton. */
const RULES: readonly (readonly [RegExp, Redirect])[] = [
  [/^\/metrics$/, { method: "GET" }],
  [/^\/v2(\/health\/(live|ready)|\/models\/stats)?$/, { method: "GET" }],
  [new RegExp(`^${MODEL}/infer$`), { method: "POST" }],
  [new RegExp(`^${MODEL}(/(ready|config|stats))?$`), { method: "GET" }],
  [/^\/v2\/(system|cuda)sharedmemory(\/region\/[^/]+)?\/status$/, { method: "GET" }],
  [/^\/v2\/(system|cuda)sharedmemory(\/region\/[^/]+)?\/(register|unregister)$/, { refusal: 403 }],
  [/^\/v2\/repository(\/[^/]+)?\/index$/, { method: "POST" }],
  [/^\/v2\/repository(\/[^/]+)?\/models\/[^/]+\/(load|unload)$/, { refusal: 403 }],
];

/**
 * Decides whether a redirect may go to a path. Reading and inference are permitted. Routes that change the server are
 * not, because the platform lets every caller of the endpoint send this header.
 *
 * @param path beginning with `/`
 */
function redirectTo(path: string): Redirect {
  return RULES.find(([pattern]) => pattern.test(path))?.[1] ?? { refusal: 400 };
}
