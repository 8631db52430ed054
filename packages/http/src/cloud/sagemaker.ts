import type { Frontend } from "@tritonjs/core";
import {
  AccessGate,
  type InferenceService,
  type Restrictions,
  SiteGuard,
  type TlsOptions,
} from "@tritonjs/core/frontend";
import { checkOptionNames, keyList } from "@tritonjs/core/internal";
import { TritonError } from "@tritonjs/protocol";
import { firstHeader, type V2Request } from "../exchange/request.js";
import { emptyResponse, faultResponse } from "../exchange/response.js";
import { type V2Handler, v2Handler } from "../routes/v2-handler.js";
import type { HttpLimits } from "../server/listening-frontend.js";
import {
  answerErrors,
  BinaryContentType,
  CloudFrontend,
  RewrittenRequest,
  readyModels,
} from "./cloud-frontend.js";
import { LoadedModels, MultiModelRoutes, withInsufficientStorage } from "./sagemaker-models.js";

/** The operation behind `/invocations`. */
export type SageMakerInferenceType = "infer" | "generate" | "generate_stream";

/** Options of {@link sageMaker}, named after tritonserver's flags and the variables of its image. */
export interface SageMakerOptions {
  /** Port to listen on: `SAGEMAKER_BIND_TO_PORT`; 8080 unless given. 0 takes any free port. */
  readonly port?: number;
  /** Address to listen on; `0.0.0.0` unless given, because the platform calls from outside the container. */
  readonly address?: string;
  /** Model of `/invocations`; the only model in service at the time of a request unless given. */
  readonly defaultModelName?: string;
  /** The operation behind `/invocations`; `infer` unless given. */
  readonly inferenceType?: SageMakerInferenceType;
  /** Whether `/ping` answers that the server is live or that its models are ready; `ready` unless given. */
  readonly pingMode?: "live" | "ready";
  /**
   * Serves the routes of multi-model endpoints (`/models`), which load and unload models. Needs
   * `new Triton({ modelControlMode: "explicit" })`; false unless given.
   */
  readonly multiModel?: boolean;
  /** Directory to which the platform unpacks the archives of a multi-model endpoint; `/opt/ml/models` unless given. */
  readonly modelsDirectory?: string;
  /** Largest tensor of a request in bytes; 64 MiB unless given. */
  readonly maxInputSize?: number;
  /** Groups of routes that require a header; none unless given, because the platform passes on no secrets. */
  readonly restrictions?: Restrictions;
  /** Encrypts connections; no encryption unless given. */
  readonly tls?: TlsOptions;
  /** Limits on the size and the duration of requests. */
  readonly limits?: Partial<HttpLimits>;
}

const SAGEMAKER_OPTION_KEYS = keyList<SageMakerOptions>({
  port: true,
  address: true,
  defaultModelName: true,
  inferenceType: true,
  pingMode: true,
  multiModel: true,
  modelsDirectory: true,
  maxInputSize: true,
  restrictions: true,
  tls: true,
  limits: true,
});

const BINARY = new BinaryContentType("application/vnd.sagemaker-triton.binary+json");
/** Milliseconds that an unload waits for requests in flight. The platform gives up after 360 seconds. */
const UNLOAD_TIMEOUT_MS = 350_000;

/**
 * The routes of Amazon SageMaker on a port of their own: `/ping` and `/invocations`, and with `multiModel` those of
 * multi-model endpoints. Binary tensors have the content type
 * `application/vnd.sagemaker-triton.binary+json;json-header-size=<bytes of JSON>`.
 *
 * Errors have the statuses of the v2 protocol, so a client can tell its own mistakes from a full queue. Triton answers
 * all of them with 400. An out-of-memory error has 507, as the platform requires.
 *
 * @throws TritonError INVALID_ARG for an unknown option.
 * @example
 * ```ts
 * await triton.serve({ frontends: [sageMaker({ defaultModelName: "resnet" })] });
 * ```
 */
export function sageMaker(options: SageMakerOptions = {}): Frontend {
  checkOptionNames("sageMaker()", options, SAGEMAKER_OPTION_KEYS);
  const { port = 8080, address = "0.0.0.0", tls, limits } = options;
  return new CloudFrontend(
    { name: "sagemaker", port, address, portHint: "sageMaker({ port })", tls, limits },
    async (service) => answerErrors(sageMakerHandler(service, options)),
  );
}

function sageMakerHandler(service: InferenceService, options: SageMakerOptions): V2Handler {
  const { inferenceType = "infer", pingMode = "ready", restrictions = {} } = options;
  const routes = v2Handler(service, {
    maxInputSize: options.maxInputSize,
    maxInputSizeName: "sageMaker({ maxInputSize })",
    restrictions,
  });
  const infer = async (request: V2Request, model: string, operation: SageMakerInferenceType) => {
    const path = `/v2/models/${encodeURIComponent(model)}/${operation}`;
    const rewritten = { method: request.method, path, rawHeaders: BINARY.headersOf(request) };
    const response = await routes(new RewrittenRequest(request, rewritten));
    return response && withInsufficientStorage(BINARY.typed(response));
  };
  const gate = new AccessGate(restrictions);
  const sites = new SiteGuard({ service, restrictions });
  const models = new LoadedModels(service, options.modelsDirectory ?? "/opt/ml/models", UNLOAD_TIMEOUT_MS);
  const multiModel = new MultiModelRoutes(service, models, (request, model) =>
    infer(request, model, "infer"),
  );
  return async (request) => {
    if (request.path === "/ping" && request.method === "GET") {
      return routes(new RewrittenRequest(request, { method: "GET", path: `/v2/health/${pingMode}` }));
    }
    if (request.path === "/invocations" && request.method === "POST") {
      return infer(request, options.defaultModelName ?? (await onlyModel(service)), inferenceType);
    }
    if (!options.multiModel || !/^\/models(\/|$)/.test(request.path)) return emptyResponse(400, "text/plain");
    if (!request.path.endsWith("/invoke")) {
      const sent = (header: string) => firstHeader(request, header);
      const missing = gate.missingHeader("model-repository", sent);
      if (missing !== undefined) return emptyResponse(403, "text/plain");
      const foreign = sites.fault(request, sent, "model-repository");
      if (foreign !== undefined) return faultResponse(403, foreign, "application/json");
    }
    return multiModel.handle(request);
  };
}

/** @throws TritonError INVALID_ARG unless exactly one model is in service. */
async function onlyModel(service: InferenceService): Promise<string> {
  const { names, only } = await readyModels(service);
  if (only !== undefined) return only;
  const text = `/invocations: expected one model in service, or a default model; got ${names.join(", ") || "none"}`;
  throw new TritonError("INVALID_ARG", text, { reason: "INVALID_OPTION" });
}
