import type { OpenAiDataSet } from "../../data/data-set.js";
import { invalidOption } from "../../data/invalid-option.js";
import { authorityOf, type Endpoint } from "../endpoint.js";
import { requestHead } from "../http/http-templates.js";
import type { OpenAiTargetOptions } from "../target-options.js";
import { shareRequests, type WireTemplates } from "../wire/wire-template.js";
import type { ConversationPlan } from "./conversations.js";

/** The endpoint that requests go to unless the options name one. */
const DEFAULT_ENDPOINT = "v1/chat/completions";

/** Prepares the requests of a data set. @throws TritonError INVALID_ARG for a body without a model. */
export function openAiTemplates(
  data: OpenAiDataSet,
  target: OpenAiTargetOptions,
  at: Endpoint,
): WireTemplates {
  const requests = data.payloads.map((payload, i) => {
    const body = Buffer.from(JSON.stringify(withOptions(JSON.parse(payload), target, i)));
    const head = Buffer.from(headOf(target, at, String(body.length)), "latin1");
    return { parts: [head, body], places: {}, prefixEnd: 0 };
  });
  return shareRequests(requests);
}

/** Prepares the turns of a data set with sessions. @throws TritonError INVALID_ARG for a body without a model. */
export function conversationPlan(
  data: OpenAiDataSet,
  target: OpenAiTargetOptions,
  at: Endpoint,
): ConversationPlan {
  return {
    // The empty line comes after the length.
    head: headOf(target, at, undefined).slice(0, -"\r\n".length),
    bodies: data.payloads.map((payload, i) => JSON.stringify(withOptions(JSON.parse(payload), target, i))),
  };
}

function headOf(target: OpenAiTargetOptions, at: Endpoint, length: string | undefined): string {
  const path = `${at.basePath}${(target.endpoint ?? DEFAULT_ENDPOINT).replace(/^\/+/, "")}`;
  const own = {
    host: authorityOf(at),
    "content-type": "application/json",
    accept: target.streaming ? "text/event-stream" : "application/json",
    "content-length": length,
  };
  return requestHead("POST", path, own, target.headers ?? {});
}

function withOptions(
  body: Record<string, unknown>,
  { modelName, streaming = false }: OpenAiTargetOptions,
  index: number,
): Record<string, unknown> {
  const model = body.model ?? modelName;
  if (model === undefined)
    throw invalidOption(
      `payload ${index}: expected a member "model", or the model's name by -m, got neither`,
    );
  return streaming
    ? { stream_options: { include_usage: true }, ...body, model, stream: true }
    : { ...body, model };
}
