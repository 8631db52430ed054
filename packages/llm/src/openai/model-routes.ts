import type { InferenceService } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { OpenAiError } from "./openai-error.js";
import { jsonResult, type OpenAiExchange, type OpenAiRoute, unknownModel } from "./openai-exchange.js";

/** The models that are ready, and Triton's additions: loading and unloading. */
export const modelRoutes: readonly OpenAiRoute[] = [
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
