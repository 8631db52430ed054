import { completionAnswer, completionEvents } from "../answers/completion-answer.js";
import { readCompletionRequest } from "../completions/completion-request.js";
import { planCompletion } from "../completions/plan-completion.js";
import { collectAnswer } from "../generation/collect.js";
import { streamAnswer } from "../generation/stream-events.js";
import { lookUpModel, readRequest } from "./read-request.js";
import { jsonResult, type OpenAiRoute } from "./route.js";

/** Route of completions of prompts: `POST /v1/completions`. */
export const completionsRoute: OpenAiRoute = {
  path: /^\/v1\/completions$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const completion = await readRequest(exchange, (fields) => readCompletionRequest(fields, exchange));
    const found = await lookUpModel(exchange, completion.model);
    const plan = planCompletion(exchange, found.inService(), completion);
    const { model, prompts, choices, topLogprobs, stream, echo } = completion;
    const prefixes = prompts.flatMap((prompt) => new Array<string>(choices).fill(echo ? prompt : ""));
    const options = { model, prefixes, topLogprobs, includeUsage: stream.includeUsage };
    if (stream.stream) return streamAnswer(exchange, plan, completionEvents(options));
    return jsonResult(completionAnswer(await collectAnswer(exchange, plan), options));
  },
};
