import type { RequestLimits } from "../chat/chat-request.js";
import { invalidField, OpenAiError, wrongType } from "../errors/openai-error.js";
import type { Fields } from "../fields/fields.js";
import { MOST_TOKENS, readSampling, type Sampling } from "../fields/sampling-fields.js";
import { readStreamOptions, type StreamOptions } from "../fields/stream-options.js";

/** Prompts that a model continues. */
export interface Completion {
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
export function readCompletionRequest(
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
