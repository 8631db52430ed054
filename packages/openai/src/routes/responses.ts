import { planChat } from "../chat/plan-chat.js";
import { collectAnswer } from "../generation/collect.js";
import { streamAnswer } from "../generation/stream-events.js";
import { ResponseEvents } from "../responses/response-events.js";
import { responseAnswer, responseFrame } from "../responses/response-object.js";
import { readResponseRequest } from "../responses/response-request.js";
import { openModel, readRequest } from "./open-model.js";
import { jsonAnswer, type Route } from "./route.js";

/** The Responses API, with text and calls of functions. */
export const responsesRoute: Route = {
  path: /^\/v1\/responses$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const { chat, echoed } = await readRequest(exchange, (fields) => readResponseRequest(fields, exchange));
    const found = await openModel(exchange, chat.model);
    const template = await exchange.templates.find(found);
    const plan = planChat(exchange, found.inService(), template, chat);
    const frame = responseFrame(echoed);
    if (chat.stream.stream) return streamAnswer(exchange, plan, new ResponseEvents(frame, chat.topLogprobs));
    return jsonAnswer(responseAnswer(await collectAnswer(exchange, plan), frame, chat.topLogprobs));
  },
};
