import type { Exchange } from "@tritonjs/core/frontend";
import { collectAnswer, completionAnswer, completionEvents, streamAnswer } from "./answers.js";
import type { RequestLimits } from "./chat-request.js";
import { type GenerationPlan, planGeneration } from "./generation.js";
import { invalidField, OpenAiError, wrongType } from "./openai-error.js";
import {
  jsonResult,
  lookUpModel,
  type OpenAiExchange,
  type OpenAiRoute,
  readRequest,
} from "./openai-exchange.js";
import {
  type Fields,
  MOST_TOKENS,
  readSampling,
  readStreamOptions,
  type Sampling,
  type StreamOptions,
} from "./request-fields.js";
import { textModelOf } from "./text-model.js";

/** Route of completions of prompts: `POST /v1/completions`. */
export const completionsRoute: OpenAiRoute = {
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
