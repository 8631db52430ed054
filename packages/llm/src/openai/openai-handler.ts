import {
  ClientGone,
  ConnectionFault,
  type CorsOptions,
  DEFAULT_MAX_INPUT_SIZE,
  firstHeader,
  listedOrigins,
  metricsResponse,
  type V2Handler,
  type V2Request,
  type V2Response,
  withCors,
} from "@tritonjs/http/frontend";
import { errorFor, optionTypes, TritonError } from "@tritonjs/protocol";
import { type InferenceService, SiteGuard } from "@tritonjs/server";
import { chatRoute } from "./chat-completions.js";
import type { RequestLimits } from "./chat-request.js";
import { type ChatTemplateSettings, ChatTemplates } from "./chat-templates.js";
import { completionsRoute } from "./completions.js";
import { embeddingsRoute } from "./embeddings.js";
import { type ImageUrlOptions, ImageUrls } from "./image-urls.js";
import { OpenAiAccess, type OpenAiAccessOptions, ServiceAccess } from "./openai-access.js";
import { describeError, OpenAiError, refusalResponse } from "./openai-error.js";
import {
  jsonResult,
  newId,
  OpenAiExchange,
  type OpenAiRoute,
  unixSeconds,
  unknownModel,
} from "./openai-exchange.js";
import { FieldWarnings, MOST_TOKENS } from "./request-fields.js";
import { responsesRoute } from "./responses.js";
import { rerankRoute, scoreRoute } from "./scoring.js";
import {
  CACHE_HEADER,
  SemanticCache,
  type SemanticCacheOptions,
  SIMILARITY_HEADER,
} from "./semantic-cache.js";
import { STRUCTURE_FIELDS, type StructureField } from "./text-model.js";
import { transcriptionsRoute } from "./transcriptions.js";

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
  /**
   * Field of `sampling_parameters` for the structure of the text, by the names of models of vLLM's Triton backend:
   * `guided_decoding` for releases before 25.11; `structured_outputs` unless given.
   */
  readonly structureFields?: Readonly<Record<string, StructureField>>;
  /**
   * Answers chats with the answer to an earlier chat of the same caller whose last message means the same; no cache
   * unless given.
   */
  readonly semanticCache?: SemanticCacheOptions;
  /** Hosts from which images of chats are fetched; unless given, chats have their images as data URLs. */
  readonly imageUrls?: ImageUrlOptions;
}

export const OPENAI_OPTION_TYPES = optionTypes<OpenAiEndpointOptions>({
  apiKeys: "array",
  publicGroups: "array",
  restrictions: "object",
  chatTemplates: "object",
  toolCallFamilies: "object",
  reasoningContent: "boolean",
  defaultMaxTokens: "number",
  maxBodySize: "number",
  maxChoices: "number",
  cors: "object",
  structureFields: "object",
  semanticCache: "object",
  imageUrls: "object",
});

/** Default of `maxBodySize`, as for v2 requests. The memory budget of requests bounds all bodies together. */
export const MAX_BODY_SIZE = DEFAULT_MAX_INPUT_SIZE;
/** Default of `maxChoices`, as in OpenAI's API. */
export const MAX_CHOICES = 128;

const EXPOSED_HEADERS = ["x-request-id", "retry-after", "retry-after-ms", CACHE_HEADER, SIMILARITY_HEADER];

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
  const log = service.log.of("openai_server");
  const warnings = new FieldWarnings(log);
  const templates = new ChatTemplates(options);
  const structureFields = checkStructureFields(options.structureFields);
  const imageUrls = new ImageUrls(options.imageUrls);
  const cache = options.semanticCache && new SemanticCache(options.semanticCache);
  const routes = openAiRoutes({ maxChoices, defaultMaxTokens }, cache);

  const respond = async (exchange: OpenAiExchange): Promise<V2Response> => {
    const { request } = exchange;
    const { route, model } = findRoute(routes, request);
    access.check(request, route.group);
    if (serviceAccess.guards(route.access)) await serviceAccess.check(request, route.access);
    if (sites.guards(route.access) && !access.guards(route.group)) {
      const foreign = sites.fault(request, (header) => firstHeader(request, header), route.access);
      if (foreign !== undefined) throw new OpenAiError(403, foreign, { code: "access_restricted" });
    }
    if (request.gone) throw new ClientGone();
    return await route.handle(exchange, model);
  };

  const handler: V2Handler = async (request) => {
    const given = firstHeader(request, "x-request-id");
    const requestId = given !== undefined && REQUEST_ID.test(given) ? given : newId("req_");
    if (log.settings.verboseLevel > 0) log.verbose(1, `OpenAI request: ${request.method} ${request.path}`);
    const exchange = new OpenAiExchange(
      service,
      request,
      requestId,
      templates,
      warnings,
      structureFields,
      imageUrls,
      maxBodySize,
    );
    const answered = (response: V2Response, headers: Readonly<Record<string, string>> = {}): V2Response => {
      for (const trace of exchange.traces) trace.status = response.status;
      return { ...response, headers: { ...response.headers, "x-request-id": requestId, ...headers } };
    };
    try {
      return answered(await respond(exchange));
    } catch (thrown) {
      if (thrown instanceof ClientGone) return undefined;
      const closes = thrown instanceof ConnectionFault;
      return answered(refusalResponse(describeError(request, thrown)), closes ? { connection: "close" } : {});
    } finally {
      exchange.memory.release();
      for (const trace of exchange.traces) trace.send(request);
    }
  };
  return withCors(handler, cors && { exposedHeaders: EXPOSED_HEADERS, ...cors });
}

/** @throws OpenAiError 404 for an unknown path, 405 for another method */
function findRoute(
  routes: readonly OpenAiRoute[],
  { method, path }: V2Request,
): { readonly route: OpenAiRoute; readonly model: string } {
  const allowed: string[] = [];
  for (const route of routes) {
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

/** Without a prototype, so that a model of any name has an entry only if the option has one. */
function checkStructureFields(
  fields: Readonly<Record<string, StructureField>> = {},
): Readonly<Record<string, StructureField>> {
  for (const [model, field] of Object.entries(fields)) {
    if (STRUCTURE_FIELDS.includes(field)) continue;
    const text = `structureFields of model '${model}': expected ${STRUCTURE_FIELDS.join(" or ")}, got ${field}`;
    throw errorFor("INVALID_OPTION", text);
  }
  return Object.assign(Object.create(null), fields);
}

function checkCount(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return;
  throw errorFor("INVALID_OPTION", `openai ${name}: expected an integer from 1 to ${most}, got ${value}`);
}

/** Prefixes of all paths, as patterns of fastify. */
export const ROUTE_PATTERNS = ["/v1/*", "/health/ready", "/metrics"];

/** All endpoints, in the order in which they are tried. */
function openAiRoutes(limits: RequestLimits, cache: SemanticCache | undefined): readonly OpenAiRoute[] {
  return [
    chatRoute(limits, cache),
    completionsRoute(limits),
    responsesRoute(limits.defaultMaxTokens),
    embeddingsRoute,
    rerankRoute,
    scoreRoute,
    transcriptionsRoute,
    ...modelRoutes(unixSeconds()),
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
}

/**
 * The models that are ready, and Triton's additions: loading and unloading.
 *
 * @param created seconds since 1970 at which the server started
 */
function modelRoutes(created: number): readonly OpenAiRoute[] {
  // The owner is that of Triton's own frontend, because clients compare it.
  const described = (id: string) => ({ id, object: "model", created, owned_by: "Triton Inference Server" });
  const read = { method: "GET", group: "model-repository", access: "metadata" } as const;
  const control = { method: "POST", group: "model-repository", access: "model-repository" } as const;
  return [
    {
      ...read,
      path: /^\/v1\/models$/,
      async handle({ service }) {
        const index = await service.repositoryIndex(true);
        const names = new Set(index.filter(({ state }) => state === "READY").map(({ name }) => name));
        return jsonResult({ object: "list", data: [...names].map(described) });
      },
    },
    {
      ...control,
      path: /^\/v1\/models\/(?<model>[^/]+)\/load$/,
      handle: ({ service }, model) =>
        changeModel(service, async () => {
          if (service.isModelReady(model, "")) {
            const text = `model '${model}' is already loaded`;
            throw new OpenAiError(400, text, { param: "model", code: "already_loaded" });
          }
          await asBadRequest(() => service.loadModel(model, {}));
          return jsonResult(described(model));
        }),
    },
    {
      ...control,
      path: /^\/v1\/models\/(?<model>[^/]+)\/unload$/,
      handle: ({ service }, model) =>
        changeModel(service, async () => {
          if (!service.isModelReady(model, "")) {
            // The words of Triton's OpenAI frontend.
            const text = `Unknown model: ${model}`;
            throw new OpenAiError(400, text, { param: "model", code: "not_loaded" });
          }
          await asBadRequest(() => service.unloadModel(model, {}));
          return jsonResult({ status: "success", model });
        }),
    },
    {
      ...read,
      // Excludes paths like those above with a name of several segments.
      path: /^\/v1\/models\/(?!.*\/(?:load|unload)$)(?<model>.+)$/,
      handle({ service }, model) {
        if (!service.isModelReady(model, "")) throw unknownModel(model);
        return jsonResult(described(model));
      },
    },
  ];
}

const lastChanges = new WeakMap<InferenceService, Promise<unknown>>();

/**
 * Makes one change at a time: if several clients load the same model at once, one loads it, and the others are answered
 * afterwards.
 *
 * @throws OpenAiError 400 unless clients control which models are loaded
 */
function changeModel<T>(service: InferenceService, change: () => Promise<T>): Promise<T> {
  if (service.inspector?.modelControlMode !== "explicit") {
    // The words of Triton's OpenAI frontend.
    const text = "Model load/unload requires --model-control-mode=explicit";
    throw new OpenAiError(400, text, { code: "model_control_disabled" });
  }
  const turn = (lastChanges.get(service) ?? Promise.resolve()).then(change);
  lastChanges.set(
    service,
    turn.catch(() => {}),
  );
  return turn;
}

/**
 * A model that cannot be loaded is the fault of the request, as in Triton's OpenAI frontend: a retry would not help.
 */
async function asBadRequest(change: () => Promise<void>): Promise<void> {
  try {
    await change();
  } catch (error) {
    const { message, reason } = TritonError.from(error);
    throw new OpenAiError(400, message, { param: "model", code: reason.toLowerCase() });
  }
}
