import { invalidField } from "../errors/openai-error.js";
import type { Fields } from "../fields/fields.js";
import { MOST_TOKENS, readSampling, type Sampling } from "../fields/sampling-fields.js";
import { readStreamOptions, type StreamOptions } from "../fields/stream-options.js";
import { type Message, readMessages } from "./messages.js";
import { readToolUse, type ToolUse } from "./tools.js";

/** A chat that a model continues. */
export interface Chat {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly toolUse: ToolUse | undefined;
  readonly sampling: Sampling;
  readonly choices: number;
  /** Number of likely tokens to report for each token; undefined without logprobs. */
  readonly topLogprobs: number | undefined;
  readonly stream: StreamOptions;
  /** Further variables of the chat template. */
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  /** Whether the prompt ends with the beginning of the assistant's message. */
  readonly addGenerationPrompt: boolean;
}

/** Largest `top_logprobs`, as in OpenAI's API. */
export const MOST_TOP_LOGPROBS = 20;

/** Limits of the server on a request. */
export interface RequestLimits {
  readonly maxChoices: number;
  readonly defaultMaxTokens: number | undefined;
}

/**
 * Reads the body of `POST /v1/chat/completions`.
 *
 * @throws OpenAiError 400 for the first field at fault
 */
export function readChatRequest(fields: Fields, { maxChoices, defaultMaxTokens }: RequestLimits): Chat {
  const model = fields.requiredString("model");
  const messages = readMessages(fields);
  const choices = fields.integer("n", 1, maxChoices) ?? 1;
  const stream = readStreamOptions(fields);
  const topLogprobs = readChatLogprobs(fields);
  const most = fields.integer("max_tokens", 1, MOST_TOKENS);
  const maxTokens = fields.integer("max_completion_tokens", 1, MOST_TOKENS) ?? most ?? defaultMaxTokens;
  const sampling = readSampling(fields);
  if (maxTokens !== undefined) sampling.max_tokens = maxTokens;
  if (topLogprobs !== undefined) sampling.logprobs = topLogprobs;
  const toolUse = readToolUse(fields);
  fields.object("chat_template_kwargs");
  const variables = fields.any("chat_template_kwargs") as Chat["variables"];
  const addGenerationPrompt = fields.boolean("add_generation_prompt") ?? true;
  return { model, messages, toolUse, sampling, choices, topLogprobs, stream, variables, addGenerationPrompt };
}

function readChatLogprobs(fields: Fields): number | undefined {
  const wanted = fields.boolean("logprobs") ?? false;
  const top = fields.integer("top_logprobs", 0, MOST_TOP_LOGPROBS);
  if (wanted) return top ?? 0;
  if (top === undefined) return undefined;
  // The words of Triton's OpenAI frontend.
  throw invalidField("top_logprobs", "`top_logprobs` can only be used when `logprobs` is True");
}
