import type { ModelConfig } from "@tritonjs/protocol";
import { OpenAiError } from "../errors/openai-error.js";
import { type InputSlot, inputSlot } from "../model/input-tensor.js";

/** Inputs and outputs of a model that makes embeddings. */
export interface EmbeddingModel {
  readonly name: string;
  /** Rows in a batch; 0 for a model without batches. */
  readonly maxBatchSize: number;
  /** Input for vLLM's JSON. Its embedding comes as JSON in `text_output`. */
  readonly requestInput: InputSlot | undefined;
  /** Input for a text. */
  readonly textInput: InputSlot | undefined;
  /** Input for the numbers of tokens. */
  readonly tokenInput: InputSlot | undefined;
  /** Inputs beside the tokens, which hold a 1 or a 0 for each of them. */
  readonly tokenMasks: readonly InputSlot[];
  /** Output with the embedding, or with its JSON. */
  readonly output: string;
  /** Whether the model reports the tokens of its input. */
  readonly countsTokens: boolean;
}

/** Values of inputs that models of the BERT family have beside the tokens. */
export const MASK_VALUES: Readonly<Record<string, number>> = { attention_mask: 1, token_type_ids: 0 };

const FLOATS = new Set(["TYPE_FP32", "TYPE_FP64"]);
const INTEGERS = new Set(["INT32", "INT64"]);

/**
 * Describes the tensors of an embedding model.
 *
 * @throws OpenAiError 400 for a model that makes no embeddings
 */
export function embeddingModelOf({ name, input, output, maxBatchSize }: ModelConfig): EmbeddingModel {
  const slots = input.map((one) => inputSlot(one, maxBatchSize)).filter((slot) => slot !== undefined);
  const outputs = output.map((one) => one.name);
  const countsTokens = outputs.includes("num_input_tokens");
  const named = (wanted: string) => slots.find((slot) => slot.name === wanted);
  const requestInput = named("embedding_request");
  const required = slots.filter(({ optional }) => !optional);
  const described = { name, maxBatchSize, countsTokens, tokenMasks: [] };
  if (requestInput !== undefined && outputs.includes("text_output")) {
    const textInput = required.find((slot) => slot.name === "text_input");
    return { ...described, requestInput, textInput, tokenInput: undefined, output: "text_output" };
  }
  const floats = output.filter(({ dataType }) => FLOATS.has(dataType));
  const [vector] = floats;
  if (vector !== undefined && floats.length === 1) {
    const texts = slots.filter(({ datatype }) => datatype === "BYTES");
    const textInput = named("text_input") ?? (texts.length === 1 ? texts[0] : undefined);
    if (textInput !== undefined && required.every((slot) => slot === textInput)) {
      return { ...described, requestInput, textInput, tokenInput: undefined, output: vector.name };
    }
    const masks = slots.filter((slot) => Object.hasOwn(MASK_VALUES, slot.name));
    const tokens = slots.filter((slot) => INTEGERS.has(slot.datatype) && !masks.includes(slot));
    const [tokenInput] = tokens;
    if (tokens.length === 1 && required.every((slot) => slot === tokenInput || masks.includes(slot))) {
      return {
        ...described,
        tokenMasks: masks,
        requestInput,
        textInput: undefined,
        tokenInput,
        output: vector.name,
      };
    }
  }
  const text =
    `model '${name}' does not make embeddings: expected one input of BYTES for a text, or of INT64 or INT32 for tokens, ` +
    "and one output of FP32";
  throw new OpenAiError(400, text, { param: "model", code: "model_not_supported" });
}
