import { TritonError } from "@tritonjs/protocol";
import type { TextRequest } from "../request/text-request.js";
import type { OpenDecoder } from "./open-decoder.js";

/**
 * Encodes the prompt of a request. Messages are rendered with the model's chat template.
 *
 * @throws TritonError INVALID_ARG if the prompt is too long for the context or its messages cannot be rendered;
 * UNSUPPORTED for messages to a model without a chat template
 */
export function encodePrompt(
  request: Pick<TextRequest, "prompt" | "messages" | "tools" | "templateVariables" | "addGenerationPrompt">,
  modelName: string,
  decoder: OpenDecoder,
): readonly number[] {
  // A chat template writes the special tokens at the beginning itself.
  const text = request.prompt ?? render(request, modelName, decoder);
  const tokens = encodeWithin(text, request.prompt !== undefined, modelName, decoder);
  if (tokens.length >= longest(decoder)) throw tooLong(modelName, decoder, String(tokens.length));
  if (tokens.length > 0) return tokens;
  throw new TritonError(
    "INVALID_ARG",
    `prompt of model '${modelName}': expected at least 1 token, got none`,
    {
      reason: "INVALID_INPUT",
    },
  );
}

/** Characters of a sample for each token of the limit: about twice as many as a token has in common text. */
const SAMPLE_CHARACTERS_PER_TOKEN = 8;

/** Tokens at the border of a sample may differ from those of the whole text, but never by a quarter. */
const CERTAIN_EXCESS = 1.25;

/**
 * Encodes a text that fits the context. All running texts wait meanwhile, and a megabyte takes seconds. So a text that
 * is far too long is refused after a look at its size and its beginning.
 */
function encodeWithin(
  text: string,
  addSpecialTokens: boolean,
  modelName: string,
  decoder: OpenDecoder,
): number[] {
  const { tokenizer } = decoder;
  const most = longest(decoder);
  const shortest = Math.ceil(Buffer.byteLength(text) / tokenizer.longestTokenBytes);
  if (shortest >= most) throw tooLong(modelName, decoder, `at least ${shortest}`);
  const sampleLength = most * SAMPLE_CHARACTERS_PER_TOKEN;
  if (text.length > sampleLength) {
    const { length } = tokenizer.encode(text.slice(0, sampleLength), addSpecialTokens);
    if (length > most * CERTAIN_EXCESS) throw tooLong(modelName, decoder, `at least ${length}`);
  }
  return tokenizer.encode(text, addSpecialTokens);
}

/**
 * Largest number of tokens that the text of a request may have: as requested, else the rest of the context.
 *
 * @throws TritonError INVALID_ARG if the request asks for more than is left
 */
export function textLength(
  { sampling }: TextRequest,
  promptLength: number,
  modelName: string,
  decoder: OpenDecoder,
): number {
  const left = longest(decoder) - promptLength;
  const { maxTokens } = sampling;
  if (maxTokens === undefined) return Math.min(left, decoder.config.defaults.maxTokens ?? left);
  if (maxTokens <= left) return maxTokens;
  throw new TritonError(
    "INVALID_ARG",
    `max_tokens of a request to model '${modelName}': expected at most ${left}, because ${limitOf(decoder)} and the ` +
      `prompt has ${promptLength}, got ${maxTokens}`,
    { reason: "INVALID_INPUT" },
  );
}

function render(
  {
    messages = [],
    tools,
    templateVariables: variables,
    addGenerationPrompt,
  }: Pick<TextRequest, "messages" | "tools" | "templateVariables" | "addGenerationPrompt">,
  modelName: string,
  { template }: OpenDecoder,
): string {
  if (template === undefined) {
    throw new TritonError(
      "UNSUPPORTED",
      `messages to model '${modelName}': expected a chat template in tokenizer_config.json, got none; send 'text_input'`,
      { reason: "MODEL_NOT_SUPPORTED" },
    );
  }
  return template.render({ messages, tools, variables, addGenerationPrompt });
}

/** Tokens of a prompt and its text. */
function longest({ contextLength, budget }: OpenDecoder): number {
  return Math.min(contextLength, budget.tokens);
}

function limitOf({ contextLength, budget, tokenBytes }: OpenDecoder): string {
  if (contextLength <= budget.tokens) return `the context has ${contextLength} tokens`;
  return `kvCacheBytes of ${budget.tokens * tokenBytes} has room for ${budget.tokens} tokens`;
}

function tooLong(modelName: string, decoder: OpenDecoder, got: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `prompt of model '${modelName}': expected at most ${longest(decoder) - 1} tokens, because ${limitOf(decoder)}, got ${got}`,
    { reason: "INVALID_INPUT" },
  );
}
