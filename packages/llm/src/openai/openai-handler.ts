import { type InferenceService, keyList, SiteGuard } from "@tritonjs/core/frontend";
import {
  ClientGone,
  ConnectionFault,
  type CorsOptions,
  DEFAULT_MAX_INPUT_SIZE,
  firstHeader,
  type HttpTrace,
  listedOrigins,
  metricsResponse,
  type V2Handler,
  type V2Request,
  type V2Response,
  withCors,
} from "@tritonjs/http/frontend";
import { TritonError } from "@tritonjs/protocol";
import { chatRoute } from "./chat-completions.js";
import { type ChatTemplateSettings, ChatTemplates } from "./chat-templates.js";
import { completionsRoute } from "./completions.js";
import { embeddingsRoute } from "./embeddings.js";
import { modelRoutes } from "./model-routes.js";
import { OpenAiAccess, type OpenAiAccessOptions, ServiceAccess } from "./openai-access.js";
import { describeError, OpenAiError, refusalResponse } from "./openai-error.js";
import { newId, type OpenAiRoute, type ServerContext, unixSeconds } from "./openai-exchange.js";
import { FieldWarnings, MOST_TOKENS } from "./request-fields.js";
import { responsesRoute } from "./responses.js";

/** Options of the OpenAI endpoints, wherever they are mounted. */
export interface OpenAiEndpointOptions extends OpenAiAccessOptions, ChatTemplateSettings {
  /**
   * `max_tokens` of requests without one; unless given, 16 for completions as in OpenAI's API, and the model's own
   * default for chats.
   */
  readonly defaultMaxTokens?: number;
  /** Largest body of a request in bytes; 64 MiB unless given. */
  readonly maxBodySize?: number;
  /** Largest number of choices of a request, each of which is a request to the model; 128 unless given. */
  readonly maxChoices?: number;
  /** Lets pages of other origins use the endpoints; none unless given. */
  readonly cors?: CorsOptions;
}

/** The names of the options of the endpoints. */
export const OPENAI_OPTION_KEYS = keyList<OpenAiEndpointOptions>({
  apiKeys: true,
  publicGroups: true,
  restrictions: true,
  chatTemplates: true,
  toolCallFamilies: true,
  defaultMaxTokens: true,
  maxBodySize: true,
  maxChoices: true,
  cors: true,
});

/** Default of `maxBodySize`, as for v2 requests. The memory budget of requests bounds all bodies together. */
export const MAX_BODY_SIZE = DEFAULT_MAX_INPUT_SIZE;
/** Default of `maxChoices`, as in OpenAI's API. */
export const MAX_CHOICES = 128;

/** Headers of answers that OpenAI's clients read. */
const EXPOSED_HEADERS = ["x-request-id", "retry-after", "retry-after-ms"];

/** An id that a client or a proxy may give a request. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/**
 * Makes a handler of all endpoints over a service, for any kind of server.
 *
 * @throws TritonError INVALID_ARG for an option with a wrong value
 */
export function openAiHandler(service: InferenceService, options: OpenAiEndpointOptions): V2Handler {
  const { defaultMaxTokens, maxBodySize = MAX_BODY_SIZE, maxChoices = MAX_CHOICES, cors } = options;
  checkCount("maxBodySize", maxBodySize, Number.MAX_SAFE_INTEGER);
  checkCount("maxChoices", maxChoices, MOST_TOKENS);
  if (defaultMaxTokens !== undefined) checkCount("defaultMaxTokens", defaultMaxTokens, MOST_TOKENS);
  const access = new OpenAiAccess(options);
  const serviceAccess = new ServiceAccess(service);
  const sites = new SiteGuard({ service, lists: listedOrigins(cors) });
  const context: ServerContext = {
    service,
    warnings: new FieldWarnings(service.log),
    templates: new ChatTemplates(options),
    maxBodySize,
    maxChoices,
    defaultMaxTokens,
    startedAt: unixSeconds(),
  };

  const answer = async (
    request: V2Request,
    requestId: string,
    traces: HttpTrace[],
    startMs: number | undefined,
  ): Promise<V2Response> => {
    const { route, model } = findRoute(request);
    access.check(request, route.group);
    if (serviceAccess.guards(route.access)) await serviceAccess.check(request, route.access);
    if (sites.guards(route.access) && !access.guards(route.group)) {
      const foreign = sites.fault(request, (header) => firstHeader(request, header), route.access);
      if (foreign !== undefined) throw new OpenAiError(403, foreign, { code: "access_restricted" });
    }
    if (request.gone) throw new ClientGone();
    const memory = service.requestMemory.share();
    try {
      return await route.handle({ ...context, request, requestId, memory, traces, startMs }, model);
    } finally {
      memory.release();
    }
  };

  const handler: V2Handler = async (request) => {
    const given = firstHeader(request, "x-request-id");
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : newId("req_");
    const { log } = service;
    if (log.settings.verboseLevel > 0) log.verbose(1, `OpenAI request: ${request.method} ${request.path}`);
    const traces: HttpTrace[] = [];
    const answered = (response: V2Response): V2Response => {
      for (const trace of traces) trace.status = response.status;
      return identified(response, requestId);
    };
    try {
      return answered(await answer(request, requestId, traces, service.tracing?.now()));
    } catch (thrown) {
      if (thrown instanceof ClientGone) return undefined;
      const refusal = answered(refusalResponse(describeError(request, thrown)));
      if (!(thrown instanceof ConnectionFault)) return refusal;
      return { ...refusal, headers: { ...refusal.headers, connection: "close" } };
    } finally {
      for (const trace of traces) trace.send(request);
    }
  };
  return withCors(handler, cors && { exposedHeaders: EXPOSED_HEADERS, ...cors });
}

function identified(response: V2Response, requestId: string): V2Response {
  return { ...response, headers: { ...response.headers, "x-request-id": requestId } };
}

/** @throws OpenAiError 404 for an unknown path, 405 for another method */
function findRoute({ method, path }: V2Request): { readonly route: OpenAiRoute; readonly model: string } {
  const allowed: string[] = [];
  for (const route of openAiRoutes) {
    const match = route.path.exec(path);
    if (match === null) continue;
    if (route.method === method) return { route, model: decodedName(match.groups?.model ?? "") };
    allowed.push(route.method);
  }
  if (allowed.length === 0)
    throw new OpenAiError(404, `Invalid URL (${method} ${path})`, { code: "unknown_url" });
  const allow = [...new Set(allowed)].join(", ");
  throw new OpenAiError(405, `Not allowed to ${method} on ${path}: expected ${allow}`, {
    code: "method_not_allowed",
    headers: { allow },
  });
}

function decodedName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function checkCount(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw new TritonError(
    "INVALID_ARG",
    `openai ${name}: expected an integer from 1 to ${most}, got ${value}`,
    {
      reason: "INVALID_OPTION",
    },
  );
}

/** All endpoints, in the order in which they are tried. */
const openAiRoutes: readonly OpenAiRoute[] = [
  chatRoute,
  completionsRoute,
  responsesRoute,
  embeddingsRoute,
  ...modelRoutes,
  {
    path: /^\/health\/ready$/,
    method: "GET",
    group: "health",
    access: "health",
    async handle({ service }) {
      const status = (await service.checkReady()) ? 200 : 400;
      return { status, headers: { "content-type": "text/plain" }, body: Buffer.alloc(0) };
    },
  },
  {
    path: /^\/metrics$/,
    method: "GET",
    group: "metrics",
    access: "metrics",
    handle: ({ service, request }) => metricsResponse(service, request),
  },
];

/** Prefixes of all paths, as patterns of fastify. */
export const ROUTE_PATTERNS = ["/v1/*", "/health/ready", "/metrics"];
