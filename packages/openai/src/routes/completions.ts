import { completionAnswer, completionEvents } from "../answers/completion-answer.js";
import { readCompletionRequest } from "../completions/completion-request.js";
import { planCompletion } from "../completions/plan-completion.js";
import { collectAnswer } from "../generation/collect.js";
import { streamAnswer } from "../generation/stream-events.js";
import { openModel, readRequest } from "./open-model.js";
import { jsonAnswer, type Route } from "./route.js";

/** Completions of prompts. */
export const completionsRoute: Route = {
  path: /^\/v1\/completions$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const completion = await readRequest(exchange, (fields) => readCompletionRequest(fields, exchange));
    const found = await openModel(exchange, completion.model);
    const plan = planCompletion(exchange, found.inService(), completion);
    const { model, prompts, choices, topLogprobs, stream, echo } = completion;
    const prefixes = prompts.flatMap((prompt) => new Array<string>(choices).fill(echo ? prompt : ""));
    const options = { model, prefixes, topLogprobs, includeUsage: stream.includeUsage };
    if (stream.stream) return streamAnswer(exchange, plan, completionEvents(options));
    return jsonAnswer(completionAnswer(await collectAnswer(exchange, plan), options));
  },
};
