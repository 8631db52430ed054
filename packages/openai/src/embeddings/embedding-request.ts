import { invalidField, wrongType } from "../errors/openai-error.js";
import { type Fields, isIntegers } from "../fields/fields.js";

/** A text, or the numbers of its tokens. */
export type EmbeddingInput = string | readonly number[];

/** Inputs that a model embeds. */
export interface EmbeddingRequest {
  readonly model: string;
  readonly inputs: readonly EmbeddingInput[];
  readonly encoding: "float" | "base64";
  /** Numbers in each embedding; undefined for all that the model makes. */
  readonly dimensions: number | undefined;
}

/** Largest number of inputs in a request, as in OpenAI's API. */
export const MOST_INPUTS = 2048;
const MOST_DIMENSIONS = 1 << 20;
const EXPECTED = "a string, an array of strings, an array of tokens, or an array of such arrays";

/**
 * Reads the body of `POST /v1/embeddings`.
 *
 * @throws OpenAiError 400 for the first field at fault
 */
export function readEmbeddingRequest(fields: Fields): EmbeddingRequest {
  const model = fields.requiredString("model");
  const encoding = fields.choice("encoding_format", ["float", "base64"]) ?? "float";
  const dimensions = fields.integer("dimensions", 1, MOST_DIMENSIONS);
  return { model, inputs: readInputs(fields), encoding, dimensions };
}

function readInputs(fields: Fields): readonly EmbeddingInput[] {
  const given = fields.any("input");
  if (given === undefined) {
    throw invalidField(
      "input",
      `you must provide 'input': expected ${EXPECTED}`,
      "missing_required_parameter",
    );
  }
  if (typeof given === "string") return [checkedText(given)];
  if (!Array.isArray(given)) throw wrongType("input", EXPECTED, given);
  if (given.length === 0)
    throw invalidField("input", "'input': expected at least one input, got none", "empty_array");
  if (typeof given[0] === "number") return [checkedTokens(given)];
  if (given.length > MOST_INPUTS) {
    const text = `'input': expected at most ${MOST_INPUTS} inputs, got ${given.length}`;
    throw invalidField("input", text, "array_above_max_length");
  }
  return given.map((input) => {
    if (typeof input === "string") return checkedText(input);
    if (Array.isArray(input)) return checkedTokens(input);
    throw wrongType("input", EXPECTED, input);
  });
}

function checkedText(text: string): string {
  if (text !== "") return text;
  throw invalidField("input", "'input': expected text that is not empty");
}

function checkedTokens(tokens: readonly unknown[]): readonly number[] {
  if (tokens.length === 0)
    throw invalidField("input", "'input': expected at least one token, got none", "empty_array");
  if (isIntegers(tokens)) return tokens;
  throw wrongType("input", EXPECTED, tokens);
}
