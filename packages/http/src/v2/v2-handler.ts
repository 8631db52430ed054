import {
  AccessGate,
  headerPattern,
  type InferenceService,
  keyList,
  type Restrictions,
  SiteGuard,
} from "@tritonjs/core/frontend";
import type { LabelLookup } from "../encode/infer-response.js";
import { ClientGone, ConnectionFault } from "../exchange/body-buffer.js";
import { InputTooLarge } from "../exchange/input-too-large.js";
import { firstHeader, type V2Request } from "../exchange/request.js";
import { errorResponse, faultResponse, type V2Response } from "../exchange/response.js";
import { DEFAULT_MAX_INPUT_SIZE } from "../limits.js";
import { matchRoute } from "../routes/index.js";
import { metricsRoute } from "../routes/metrics.js";
import { openApiRoute } from "../routes/open-api.js";
import type { Exchange, RouteContext } from "../routes/route.js";
import { authenticate } from "./authenticate.js";

/** Options of the v2 routes, wherever they are mounted. */
export interface V2Options {
  /** Largest tensor of a request in bytes; 64 MiB unless given. A body may have eight times as many. */
  readonly maxInputSize?: number;
  /**
   * What errors call `maxInputSize`, for a program whose users set it elsewhere: `--max-body` in "Use --max-body to
   * increase the limit."; the option of this function unless given.
   */
  readonly maxInputSizeName?: string;
  /** Class names of an output, for classification; the model's own unless given. */
  readonly labels?: LabelLookup;
  /**
   * Headers with a name that matches anywhere go to the model as parameters; none unless given. A string is in the
   * syntax of RE2. The case of letters does not matter.
   */
  readonly headerForwardPattern?: string | RegExp;
  /** Groups of routes that require a header, `{}` for none; those of the `Triton`'s `security` unless given. */
  readonly restrictions?: Restrictions;
  /** Serves the OpenAPI document of the routes at `/v2/openapi.json`, which Triton does not have; false unless given. */
  readonly openApi?: boolean;
  /** Serves the metrics page at `/metrics`, below the prefix, without a port of its own; false unless given. */
  readonly metrics?: boolean;
}

/** The names of the options of the routes. */
export const V2_OPTION_KEYS = keyList<V2Options>({
  maxInputSize: true,
  maxInputSizeName: true,
  labels: true,
  headerForwardPattern: true,
  restrictions: true,
  openApi: true,
  metrics: true,
});

/** Answers one request with any path. Resolves to undefined when the client has left. */
export type V2Handler = (request: V2Request) => Promise<V2Response | undefined>;

/**
 * Makes a handler of all routes over a service, for any kind of server.
 *
 * @param lists says whether pages of an origin may change the server; none may unless given
 */
export function v2Handler(
  service: InferenceService,
  options: V2Options = {},
  lists?: (origin: string) => boolean,
): V2Handler {
  const context: RouteContext = {
    service,
    maxInputSize: options.maxInputSize ?? DEFAULT_MAX_INPUT_SIZE,
    labels: options.labels ?? ((model, output) => model.labels.get(output)),
    forwardedHeaders: headerPattern(options.headerForwardPattern),
  };
  const gate = new AccessGate(options.restrictions ?? service.restrictions);
  const sites = new SiteGuard({ service, restrictions: options.restrictions, lists });
  const limitName = options.maxInputSizeName ?? "the option maxInputSize";
  const extraRoutes = [
    ...(options.openApi ? [openApiRoute] : []),
    ...(options.metrics ? [metricsRoute] : []),
  ];
  const { log, authentication } = service;
  return async (request) => {
    if (log.settings.verboseLevel > 0) log.verbose(1, `HTTP request: ${request.method} ${request.path}`);
    const match = matchRoute(request.path, extraRoutes);
    if (match === undefined) return faultResponse(404, "Not Found", "text/plain");
    const { route } = match;
    if (authentication !== undefined) {
      const refusal = await authenticate(authentication, request, route.group, route.errorType);
      if (refusal !== undefined) return refusal;
      if (request.gone) return undefined;
    }
    const missing = gate.missingHeader(route.group, (header) => firstHeader(request, header));
    if (missing !== undefined) {
      return faultResponse(403, `This API is restricted, expecting header '${missing}'`, "text/plain");
    }
    const foreign = sites.fault(request, (header) => firstHeader(request, header), route.group);
    if (foreign !== undefined) return faultResponse(403, foreign, route.errorType);
    if (!route.methods.some((method) => method === request.method)) {
      return faultResponse(405, "Method Not Allowed", route.errorType);
    }
    // Property by property: a spread looks each property up at run time, which takes longer than the rest of this
    // function.
    const exchange: Exchange = {
      service,
      maxInputSize: context.maxInputSize,
      labels: context.labels,
      forwardedHeaders: context.forwardedHeaders,
      request,
      memory: service.requestMemory.share(),
      model: match.model,
      version: match.version,
      region: match.region,
      repository: match.repository,
      errorType: route.errorType,
      trace: undefined,
    };
    try {
      return answered(exchange, await route.handle(exchange));
    } catch (thrown) {
      if (thrown instanceof ClientGone) return undefined;
      const error = thrown instanceof InputTooLarge ? thrown.advising(limitName) : thrown;
      return answered(
        exchange,
        thrown instanceof ConnectionFault
          ? errorResponse(request, error, "application/json", { connection: "close" })
          : errorResponse(request, error, exchange.errorType),
      );
    } finally {
      exchange.memory.release();
      exchange.trace?.send(request);
    }
  };
}

/** Notes the status of the answer for the trace of the request. */
function answered(exchange: Exchange, response: V2Response): V2Response {
  if (exchange.trace !== undefined) exchange.trace.status = response.status;
  return response;
}
