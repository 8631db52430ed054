import type { PinnedModel } from "@tritonjs/core/frontend";
import { OpenAiError } from "../errors/openai-error.js";
import type { Exchange } from "../generation/exchange.js";
import type { GenerationPlan } from "../generation/generation.js";
import { planGeneration } from "../generation/plan.js";
import { textModelOf } from "../model/text-model.js";
import type { Completion } from "./completion-request.js";

/**
 * Plans the requests for a completion.
 *
 * @throws OpenAiError 400 for a model that takes only messages
 */
export function planCompletion(
  exchange: Exchange,
  pinned: PinnedModel,
  { prompts, choices, sampling, topLogprobs, stream }: Completion,
): GenerationPlan {
  const model = textModelOf(pinned.config);
  if (model.promptInput === undefined) {
    const text = `model '${model.name}' cannot take a prompt: expected an input 'text_input'. Send messages to /v1/chat/completions`;
    throw new OpenAiError(400, text, { param: "model", code: "model_not_supported" });
  }
  const shared = { sampling, choices, stream: stream.stream, logprobs: topLogprobs !== undefined };
  return planGeneration(
    exchange,
    pinned,
    model,
    prompts.map((prompt) => ({ ...shared, prompt })),
  );
}
