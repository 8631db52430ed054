import { planChat } from "../chat/plan-chat.js";
import { collectAnswer } from "../generation/collect.js";
import { streamAnswer } from "../generation/stream-events.js";
import { ResponseEvents } from "../responses/response-events.js";
import { responseAnswer, responseFrame } from "../responses/response-object.js";
import { readResponseRequest } from "../responses/response-request.js";
import { lookUpModel, readRequest } from "./read-request.js";
import { jsonResult, type OpenAiRoute } from "./route.js";

/** Route of the Responses API, with text and calls of functions: `POST /v1/responses`. */
export const responsesRoute: OpenAiRoute = {
  path: /^\/v1\/responses$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const { chat, echoed } = await readRequest(exchange, (fields) => readResponseRequest(fields, exchange));
    const found = await lookUpModel(exchange, chat.model);
    const template = await exchange.templates.find(found);
    const plan = planChat(exchange, found.inService(), template, chat);
    const frame = responseFrame(echoed);
    if (chat.stream.stream) return streamAnswer(exchange, plan, new ResponseEvents(frame, chat.topLogprobs));
    return jsonResult(responseAnswer(await collectAnswer(exchange, plan), frame, chat.topLogprobs));
  },
};
