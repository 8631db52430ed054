import { type Shape, Tensor } from "@tritonjs/protocol";
import { invalidField, OpenAiError } from "../errors/openai-error.js";
import { type InputSlot, type SlotValue, tensorOf } from "../model/input-tensor.js";
import { type EmbeddingModel, MASK_VALUES } from "./embedding-model.js";
import type { EmbeddingInput, EmbeddingRequest } from "./embedding-request.js";

/** One request to the model. */
export interface EmbeddingCall {
  readonly inputs: ReadonlyMap<string, Tensor>;
  /** Number of embeddings in its answer. */
  readonly rows: number;
}

/**
 * Makes the requests for the inputs: as few as the model's batches allow for texts, and one for each input otherwise.
 *
 * @throws OpenAiError 400 for tokens that the model cannot take, and for texts to a model that takes tokens
 */
export function embeddingCalls(
  model: EmbeddingModel,
  { inputs, dimensions }: EmbeddingRequest,
): EmbeddingCall[] {
  const { maxBatchSize, requestInput } = model;
  if (requestInput !== undefined)
    return inputs.map((input) => jsonCall(model, requestInput, input, dimensions));
  const batches: EmbeddingCall[] = [];
  const texts: string[] = [];
  const flush = () => {
    if (texts.length > 0) batches.push(textCall(model, texts.splice(0)));
  };
  for (const input of inputs) {
    if (typeof input !== "string") {
      flush();
      batches.push(tokenCall(model, input));
      continue;
    }
    texts.push(input);
    if (texts.length >= Math.max(1, maxBatchSize)) flush();
  }
  flush();
  return batches;
}

/** Whether the model itself cuts embeddings to `dimensions`. */
export function cutsItself({ requestInput }: EmbeddingModel): boolean {
  return requestInput !== undefined;
}

function jsonCall(
  { textInput, name }: EmbeddingModel,
  slot: InputSlot,
  input: EmbeddingInput,
  dimensions: number | undefined,
): EmbeddingCall {
  const pooling = dimensions === undefined ? {} : { pooling_params: { dimensions: [dimensions] } };
  const inputs = new Map([[slot.name, fitted(name, slot, JSON.stringify({ input, ...pooling }))]]);
  if (textInput !== undefined) inputs.set(textInput.name, fitted(name, textInput, ""));
  return { inputs, rows: 1 };
}

function textCall(
  { name, textInput, maxBatchSize }: EmbeddingModel,
  texts: readonly string[],
): EmbeddingCall {
  if (textInput === undefined) {
    const text = `model '${name}' takes only tokens: expected arrays of integers, got text`;
    throw new OpenAiError(400, text, { param: "input", code: "unsupported_value" });
  }
  const [first] = texts;
  if (maxBatchSize === 0) {
    return { inputs: new Map([[textInput.name, fitted(name, textInput, first!)]]), rows: 1 };
  }
  const row = fitted(name, textInput, first!).shape.slice(1);
  const shape: Shape = [texts.length, ...row];
  const tensor = Tensor.fromElements(
    "BYTES",
    shape,
    texts.map((text) => Buffer.from(text)),
  );
  return { inputs: new Map([[textInput.name, tensor]]), rows: texts.length };
}

function tokenCall(
  { name, tokenInput, tokenMasks }: EmbeddingModel,
  tokens: readonly number[],
): EmbeddingCall {
  if (tokenInput === undefined) {
    const text = `model '${name}' takes only text: expected strings, got tokens`;
    throw new OpenAiError(400, text, { param: "input", code: "unsupported_value" });
  }
  const inputs = new Map([[tokenInput.name, fitted(name, tokenInput, tokens)]]);
  for (const mask of tokenMasks) {
    const value = MASK_VALUES[mask.name]!;
    inputs.set(
      mask.name,
      fitted(
        name,
        mask,
        tokens.map(() => value),
      ),
    );
  }
  return { inputs, rows: 1 };
}

function fitted(model: string, slot: InputSlot, value: SlotValue): Tensor {
  const tensor = tensorOf(slot, value);
  if (tensor !== undefined) return tensor;
  const count = Array.isArray(value) ? value.length : 1;
  const text = `model '${model}', input '${slot.name}': expected shape [${slot.shape.join(", ")}], got ${count} elements`;
  throw invalidField("input", text);
}
