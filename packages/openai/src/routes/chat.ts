import { chatAnswer, chatEvents } from "../answers/chat-answer.js";
import { readChatRequest } from "../chat/chat-request.js";
import { planChat } from "../chat/plan-chat.js";
import { collectAnswer } from "../generation/collect.js";
import { streamAnswer } from "../generation/stream-events.js";
import { lookUpModel, readRequest } from "./read-request.js";
import { jsonResult, type OpenAiRoute } from "./route.js";

/** Route of chats: `POST /v1/chat/completions`. */
export const chatRoute: OpenAiRoute = {
  path: /^\/v1\/chat\/completions$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const chat = await readRequest(exchange, (fields) => readChatRequest(fields, exchange));
    const found = await lookUpModel(exchange, chat.model);
    const template = await exchange.templates.find(found);
    const plan = planChat(exchange, found.inService(), template, chat);
    const { model, choices, topLogprobs, stream } = chat;
    const options = { model, choices, topLogprobs, includeUsage: stream.includeUsage };
    if (stream.stream) return streamAnswer(exchange, plan, chatEvents(options));
    return jsonResult(chatAnswer(await collectAnswer(exchange, plan), options));
  },
};
