import { type Exchange, type InferenceService, SiteGuard } from "@tritonjs/core/frontend";
import { keyList } from "@tritonjs/core/internal";
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
import { errorOf, TritonError } from "@tritonjs/protocol";
import { collectAnswer, completionAnswer, completionEvents, streamAnswer } from "./answers.js";
import { chatRoute } from "./chat-completions.js";
import type { RequestLimits } from "./chat-request.js";
import { type ChatTemplateSettings, ChatTemplates } from "./chat-templates.js";
import { embeddingsRoute } from "./embeddings.js";
import { type GenerationPlan, planGeneration } from "./generation.js";
import { OpenAiAccess, type OpenAiAccessOptions, ServiceAccess } from "./openai-access.js";
import { describeError, invalidField, OpenAiError, refusalResponse, wrongType } from "./openai-error.js";
import {
  jsonResult,
  lookUpModel,
  newId,
  type OpenAiExchange,
  type OpenAiRoute,
  readRequest,
  type ServerContext,
  unixSeconds,
  unknownModel,
} from "./openai-exchange.js";
import {
  type Fields,
  FieldWarnings,
  MOST_TOKENS,
  readSampling,
  readStreamOptions,
  type Sampling,
  type StreamOptions,
} from "./request-fields.js";
import { responsesRoute } from "./responses.js";
import { textModelOf } from "./text-model.js";

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
  throw errorOf("INVALID_OPTION", `openai ${name}: expected an integer from 1 to ${most}, got ${value}`);
}

/** Prefixes of all paths, as patterns of fastify. */
export const ROUTE_PATTERNS = ["/v1/*", "/health/ready", "/metrics"];

/** Route of completions of prompts: `POST /v1/completions`. */
const completionsRoute: OpenAiRoute = {
  path: /^\/v1\/completions$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const completion = await readRequest(exchange, (fields) => readCompletionRequest(fields, exchange));
    const call = await lookUpModel(exchange, completion.model);
    const plan = planCompletion(exchange, call, completion);
    const { model, prompts, choices, topLogprobs, stream, echo } = completion;
    const prefixes = prompts.flatMap((prompt) => new Array<string>(choices).fill(echo ? prompt : ""));
    const options = { model, prefixes, topLogprobs, includeUsage: stream.includeUsage };
    if (stream.stream) return streamAnswer(exchange, plan, completionEvents(options));
    return jsonResult(completionAnswer(await collectAnswer(exchange, plan), options));
  },
};

/** Prompts that a model continues. */
interface Completion {
  readonly model: string;
  readonly prompts: readonly string[];
  /** Choices of each prompt. */
  readonly choices: number;
  readonly sampling: Sampling;
  /** Number of likely tokens to report for each token; undefined without logprobs. */
  readonly topLogprobs: number | undefined;
  readonly stream: StreamOptions;
  /** Whether each choice begins with its prompt. */
  readonly echo: boolean;
}

/** Default of `max_tokens`, as in OpenAI's API. */
const DEFAULT_MAX_TOKENS = 16;
const MOST_LOGPROBS = 5;

/**
 * Reads the body of `POST /v1/completions`.
 *
 * @throws OpenAiError 400 for the first field at fault
 */
function readCompletionRequest(
  fields: Fields,
  { maxChoices, defaultMaxTokens = DEFAULT_MAX_TOKENS }: RequestLimits,
): Completion {
  const model = fields.requiredString("model");
  const prompts = readPrompts(fields);
  const choices = fields.integer("n", 1, maxChoices) ?? 1;
  if (choices * prompts.length > maxChoices) {
    const text = `'n': expected at most ${maxChoices} choices for all prompts, got ${choices} for each of ${prompts.length}`;
    throw invalidField("n", text);
  }
  const best = fields.integer("best_of", 1, maxChoices) ?? choices;
  if (best !== choices) {
    const text = `'best_of': expected the same number as 'n' (${choices}), got ${best}: choices are not compared`;
    throw new OpenAiError(400, text, { param: "best_of", code: "unsupported_value" });
  }
  if ((fields.string("suffix") ?? "") !== "") {
    const text = "'suffix': expected none, because models continue a prompt at its end";
    throw new OpenAiError(400, text, { param: "suffix", code: "unsupported_parameter" });
  }
  const topLogprobs = fields.integer("logprobs", 0, MOST_LOGPROBS);
  const stream = readStreamOptions(fields);
  const sampling = readSampling(fields);
  sampling.max_tokens = fields.integer("max_tokens", 1, MOST_TOKENS) ?? defaultMaxTokens;
  if (topLogprobs !== undefined) sampling.logprobs = topLogprobs;
  const echo = fields.boolean("echo") ?? false;
  return { model, prompts, choices, sampling, topLogprobs, stream, echo };
}

function readPrompts(fields: Fields): readonly string[] {
  const given = fields.any("prompt");
  if (given === undefined) {
    throw invalidField(
      "prompt",
      "you must provide 'prompt': expected a string or an array of strings",
      "missing_required_parameter",
    );
  }
  const prompts = Array.isArray(given) ? (given as readonly unknown[]) : [given];
  if (prompts.length === 0)
    throw invalidField("prompt", "'prompt': expected at least one prompt, got none", "empty_array");
  return prompts.map((prompt) => {
    if (typeof prompt === "number" || Array.isArray(prompt)) {
      const text = "'prompt': expected text, got tokens: models take their prompt as text";
      throw new OpenAiError(400, text, { param: "prompt", code: "unsupported_value" });
    }
    if (typeof prompt !== "string") throw wrongType("prompt", "a string or an array of strings", prompt);
    if (prompt === "") throw invalidField("prompt", "'prompt': expected text that is not empty");
    return prompt;
  });
}

/**
 * Plans the requests for a completion.
 *
 * @throws OpenAiError 400 for a model that takes only messages
 */
function planCompletion(
  exchange: OpenAiExchange,
  call: Exchange,
  { prompts, choices, sampling, topLogprobs, stream }: Completion,
): GenerationPlan {
  const model = textModelOf(call.current().config);
  if (model.promptInput === undefined) {
    const text = `model '${model.name}' cannot take a prompt: expected an input 'text_input'. Send messages to /v1/chat/completions`;
    throw new OpenAiError(400, text, { param: "model", code: "model_not_supported" });
  }
  const shared = { sampling, choices, stream: stream.stream, logprobs: topLogprobs !== undefined };
  return planGeneration(
    exchange,
    call,
    model,
    prompts.map((prompt) => ({ ...shared, prompt })),
  );
}

/** The models that are ready, and Triton's additions: loading and unloading. */
const modelRoutes: readonly OpenAiRoute[] = [
  {
    path: /^\/v1\/models$/,
    method: "GET",
    group: "model-repository",
    access: "metadata",
    async handle(exchange) {
      const index = await exchange.service.repositoryIndex(true);
      const names = [...new Set(index.filter(({ state }) => state === "READY").map(({ name }) => name))];
      return jsonResult({ object: "list", data: names.map((name) => modelObject(exchange, name)) });
    },
  },
  {
    path: /^\/v1\/models\/(?<model>[^/]+)\/load$/,
    method: "POST",
    group: "model-repository",
    access: "model-repository",
    handle(exchange, model) {
      checkControl(exchange);
      const { service } = exchange;
      return oneChangeAtATime(service, async () => {
        if (service.isModelReady(model, "")) {
          throw new OpenAiError(400, `model '${model}' is already loaded`, {
            param: "model",
            code: "already_loaded",
          });
        }
        await asBadRequest(() => service.loadModel(model, {}));
        return jsonResult(modelObject(exchange, model));
      });
    },
  },
  {
    path: /^\/v1\/models\/(?<model>[^/]+)\/unload$/,
    method: "POST",
    group: "model-repository",
    access: "model-repository",
    handle(exchange, model) {
      checkControl(exchange);
      const { service } = exchange;
      return oneChangeAtATime(service, async () => {
        if (!service.isModelReady(model, "")) {
          // The words of Triton's OpenAI frontend.
          const text = `Unknown model: ${model}`;
          throw new OpenAiError(400, text, { param: "model", code: "not_loaded" });
        }
        await asBadRequest(() => service.unloadModel(model, {}));
        return jsonResult({ status: "success", model });
      });
    },
  },
  {
    // Excludes paths like those above with a name of several segments.
    path: /^\/v1\/models\/(?!.*\/(?:load|unload)$)(?<model>.+)$/,
    method: "GET",
    group: "model-repository",
    access: "metadata",
    handle(exchange, model) {
      if (!exchange.service.isModelReady(model, "")) throw unknownModel(model);
      return jsonResult(modelObject(exchange, model));
    },
  },
];

/** The last change of each service. */
const lastChanges = new WeakMap<InferenceService, Promise<unknown>>();

/**
 * Makes one change at a time: if several clients load the same model at once, one loads it, and the others are answered
 * afterwards.
 */
function oneChangeAtATime<T>(service: InferenceService, change: () => Promise<T>): Promise<T> {
  const turn = (lastChanges.get(service) ?? Promise.resolve()).then(change);
  lastChanges.set(
    service,
    turn.catch(() => {}),
  );
  return turn;
}

function modelObject({ startedAt }: OpenAiExchange, id: string): object {
  // The owner is that of Triton's own frontend, because clients compare it.
  return { id, object: "model", created: startedAt, owned_by: "Triton Inference Server" };
}

/** @throws OpenAiError 400 unless clients control which models are loaded */
function checkControl({ service }: OpenAiExchange): void {
  if (service.inspector?.modelControlMode === "explicit") return;
  // The words of Triton's OpenAI frontend.
  const text = "Model load/unload requires --model-control-mode=explicit";
  throw new OpenAiError(400, text, { code: "model_control_disabled" });
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
