import { ENDPOINT_GROUPS } from "@tritonjs/core/extension";
import type { AccessGroup } from "@tritonjs/core/types";
import { optionTypes } from "@tritonjs/protocol";
import {
  AccessGate,
  type AllowedHosts,
  type Authentication,
  type InferenceService,
  type Restrictions,
  SiteGuard,
} from "@tritonjs/server";
import { HostRule, headerPattern } from "@tritonjs/server/internal";
import { ClientGone, ConnectionFault, firstHeader, headersOf, type V2Request } from "../exchange/request.js";
import {
  type ContentType,
  errorResponse,
  faultResponse,
  jsonResponse,
  type V2Response,
} from "../exchange/response.js";
import type { LabelLookup } from "../infer/infer-response.js";
import type { PlainJson } from "../json/write-json.js";
import { DEFAULT_MAX_INPUT_SIZE, InputTooLarge } from "../limits.js";
import { extensionRoutes } from "./extension-routes.js";
import { generateRoutes } from "./generate.js";
import { inferRoute } from "./infer.js";
import {
  healthRoutes,
  metadataRoutes,
  repositoryRoutes,
  settingsRoutes,
  sharedMemoryRoutes,
  statisticsRoutes,
} from "./management.js";
import { metricsRoute, prepareMetrics } from "./metrics.js";
import { openApiPageRoute, openApiRoute } from "./open-api.js";
import type { HttpExchange, Route } from "./route.js";

/** Options of the v2 routes, wherever they are mounted. */
export interface V2Options {
  /** Largest tensor of a request in bytes; 64 MiB unless given. A body may have eight times as many. */
  readonly maxInputSize?: number;
  /**
   * Name of `maxInputSize` in errors, for a program whose users set it elsewhere: `--max-body` in "Use --max-body to
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
  /**
   * Serves the OpenAPI document of the routes at `/v2/openapi.json`, and a page that shows it at `/v2/docs`. Triton has
   * neither; false unless given.
   */
  readonly openApi?: boolean;
  /** Serves the metrics page at `/metrics`, below the prefix, without a port of its own; false unless given. */
  readonly metrics?: boolean;
}

export const V2_OPTION_TYPES = optionTypes<V2Options>({
  maxInputSize: "number",
  maxInputSizeName: "string",
  labels: "function",
  headerForwardPattern: ["object", "string"],
  restrictions: "object",
  openApi: "boolean",
  metrics: "boolean",
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
  const { maxInputSize = DEFAULT_MAX_INPUT_SIZE } = options;
  const labels: LabelLookup = options.labels ?? ((model, output) => model.labels.get(output));
  const forwardedHeaders = headerPattern(options.headerForwardPattern);
  const access = new HttpAccess(service, options.restrictions, lists);
  const limitName = options.maxInputSizeName ?? "the option maxInputSize";
  const extraRoutes = [
    ...extensionRoutes(service.management),
    ...(options.openApi ? [openApiRoute, openApiPageRoute] : []),
    ...(options.metrics ? [metricsRoute] : []),
  ];
  if (options.metrics) void prepareMetrics(service);
  const log = service.log.of("http_server");
  return async (request) => {
    if (log.settings.verboseLevel > 0) log.verbose(1, `HTTP request: ${request.method} ${request.path}`);
    const match = matchRoute(request.path, extraRoutes);
    if (match === undefined) return faultResponse(404, "Not Found", "text/plain");
    const { route } = match;
    if (access.guards(route.group)) {
      const refusal = await access.refusal(request, route.group, route.errorType);
      if (refusal !== undefined) return refusal;
      if (request.gone) return undefined;
    }
    if (!route.methods.some((method) => method === request.method)) {
      return faultResponse(405, "Method Not Allowed", route.errorType);
    }
    // Property by property: a spread looks each property up at run time, which takes longer than the rest of this
    // function.
    const exchange: HttpExchange = {
      service,
      maxInputSize,
      labels,
      forwardedHeaders,
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
function answered(exchange: HttpExchange, response: V2Response): V2Response {
  if (exchange.trace !== undefined) exchange.trace.status = response.status;
  return response;
}

/** Answers errors that a handler throws in Triton's form: `{ "error": message }` with the status of its code. */
export function answerErrors(handler: V2Handler, errorType: ContentType = "application/json"): V2Handler {
  return async (request) => {
    try {
      return await handler(request);
    } catch (thrown) {
      if (thrown instanceof ClientGone) return undefined;
      return errorResponse(request, thrown, errorType);
    }
  };
}

/** All routes, in the order in which they are tried: `v2/models/stats` comes before the model routes. */
export const routes: readonly Route[] = [
  inferRoute,
  ...generateRoutes,
  ...statisticsRoutes,
  ...healthRoutes,
  ...metadataRoutes,
  ...repositoryRoutes,
  ...sharedMemoryRoutes,
  ...settingsRoutes,
];

interface RouteMatch extends Pick<HttpExchange, "model" | "version" | "region" | "repository"> {
  readonly route: Route;
}

/**
 * The route of a path, in the table or in `extra`. The path is matched as sent: it is not decoded, and a trailing slash
 * counts.
 */
export function matchRoute(path: string, extra: readonly Route[] = []): RouteMatch | undefined {
  return recent.get(path) ?? keep(path, matchIn(routes, path)) ?? matchIn(extra, path);
}

const MAX_RECENT = 256;
const MAX_RECENT_LENGTH = 256;

/** Matches of paths that clients asked for lately. Matching the path of an inference takes 0.7 KB and 0.5 µs. */
const recent = new Map<string, RouteMatch>();

function keep(path: string, match: RouteMatch | undefined): RouteMatch | undefined {
  if (match === undefined || path.length > MAX_RECENT_LENGTH) return match;
  if (recent.size >= MAX_RECENT) recent.clear();
  recent.set(path, match);
  return match;
}

function matchIn(table: readonly Route[], path: string): RouteMatch | undefined {
  for (const route of table) {
    const match = route.path.exec(path);
    if (match === null) continue;
    const { model = "", version = "", region = "", repository = "" } = match.groups ?? {};
    return { route, model, version, region, repository };
  }
  return undefined;
}

/** Decides which clients may use which routes, before their bodies are read. */
export class HttpAccess {
  readonly #authentication: Authentication | undefined;
  readonly #gate: AccessGate;
  readonly #sites: SiteGuard;
  /** Groups of operations with a check. Requests to others are not looked at. */
  readonly #guarded: ReadonlySet<AccessGroup>;

  /**
   * @param restrictions those of the service unless given
   * @param lists says whether pages of an origin may change the server; none may unless given
   */
  constructor(service: InferenceService, restrictions?: Restrictions, lists?: (origin: string) => boolean) {
    this.#authentication = service.authentication;
    this.#gate = new AccessGate(restrictions ?? service.restrictions);
    this.#sites = new SiteGuard({ service, restrictions, lists });
    const guards = [this.#authentication, this.#gate, this.#sites];
    const groups: readonly AccessGroup[] = [...ENDPOINT_GROUPS, "metrics"];
    this.#guarded = new Set(groups.filter((group) => guards.some((guard) => guard?.guards(group))));
  }

  /** True if requests of the group have to be checked. */
  guards(group: AccessGroup): boolean {
    return this.#guarded.has(group);
  }

  /**
   * The refusal of a request; undefined if it is allowed.
   *
   * @param errorType content type of a refusal
   */
  async refusal(
    request: V2Request,
    group: AccessGroup,
    errorType: ContentType,
  ): Promise<V2Response | undefined> {
    const unauthenticated = await this.#authenticate(request, group, errorType);
    if (unauthenticated !== undefined) return unauthenticated;
    const sent = (header: string) => firstHeader(request, header);
    const missing = this.#gate.missingHeader(group, sent);
    if (missing !== undefined) {
      const text = `This API is restricted, expecting header '${missing}'${this.#gate.hint(group)}`;
      return faultResponse(403, text, "text/plain");
    }
    const foreign = this.#sites.fault(request, sent, group);
    return foreign === undefined ? undefined : faultResponse(403, foreign, errorType);
  }

  async #authenticate(
    request: V2Request,
    group: AccessGroup,
    errorType: ContentType,
  ): Promise<V2Response | undefined> {
    const authentication = this.#authentication;
    if (!authentication?.guards(group)) return undefined;
    const { method, path, remoteAddress } = request;
    try {
      const headers = headersOf(request);
      await authentication.check({ transport: "http", method, path, group, headers, remoteAddress });
      return undefined;
    } catch (thrown) {
      const refusal = errorResponse(request, thrown, errorType);
      if (refusal.status !== 401) return refusal;
      return { ...refusal, headers: { ...refusal.headers, "www-authenticate": authentication.challenge } };
    }
  }
}

/**
 * Refuses requests to hosts that are not allowed, of any path, while a server listens on loopback. Otherwise a page
 * whose name resolves to 127.0.0.1 could read everything that the machine of its visitor serves (DNS rebinding).
 *
 * @param at says whether the server listens only on loopback addresses, which may be known later
 * @param bodyOf makes the body of a refusal; Triton's form of an error unless given
 */
export function withAllowedHosts(
  handler: V2Handler,
  allowed: AllowedHosts | undefined,
  at: (() => boolean) | { readonly isLoopback: boolean },
  bodyOf: (message: string) => PlainJson = (error) => ({ error }),
): V2Handler {
  const hosts = new HostRule(allowed);
  /** The last host that was allowed: most requests name the same. */
  let accepted: string | undefined;
  return (request) => {
    const isLoopback = typeof at === "function" ? at() : at.isLoopback;
    const host = isLoopback ? firstHeader(request, "host") : undefined;
    if (host === undefined || host === accepted) return handler(request);
    const fault = hosts.fault(host);
    if (fault !== undefined) {
      return Promise.resolve({ ...jsonResponse(bodyOf(fault)), status: 403 });
    }
    accepted = host;
    return handler(request);
  };
}
