import type { ModelConfig } from "@tritonjs/protocol";
import { OpenAiError } from "../errors/openai-error.js";
import { type InputSlot, inputSlot } from "./input-tensor.js";

/** Inputs and outputs of a model that generates text. */
export interface TextModel {
  readonly name: string;
  readonly inputs: ReadonlyMap<string, InputSlot>;
  readonly outputs: ReadonlySet<string>;
  /** Input for a prompt; undefined for a model that takes only messages. */
  readonly promptInput: string | undefined;
  /** Output with the text. */
  readonly textOutput: string;
}

/** Inputs of BYTES that are not a prompt. */
const OTHER_TEXTS = new Set(["messages", "tools", "sampling_parameters", "embedding_request", "image"]);

const described = new WeakMap<ModelConfig, TextModel>();

/**
 * Describes the tensors of a text model. The prompt is `text_input`, or the only input of BYTES that is not optional.
 * The text is `text_output`, or the only output of BYTES.
 *
 * @throws OpenAiError 400 for a model that does not generate text
 */
export function textModelOf(config: ModelConfig): TextModel {
  let model = described.get(config);
  if (model === undefined) {
    model = describe(config);
    described.set(config, model);
  }
  return model;
}

function describe({ name, input, output, maxBatchSize }: ModelConfig): TextModel {
  const slots = input.map((one) => inputSlot(one, maxBatchSize)).filter((slot) => slot !== undefined);
  const inputs = new Map(slots.map((slot) => [slot.name, slot]));
  const texts = output.filter(({ dataType }) => dataType === "TYPE_STRING").map((one) => one.name);
  const promptInput = inputs.has("text_input") ? "text_input" : onlyOne(slots.filter(isRequiredText))?.name;
  const textOutput = texts.includes("text_output") ? "text_output" : onlyOne(texts);
  const takesText = promptInput !== undefined || inputs.has("messages");
  if (!takesText || textOutput === undefined) {
    const text =
      `model '${name}' does not generate text: expected an input 'text_input' or 'messages' and an output ` +
      `'text_output' of BYTES, got inputs ${namesOf(input)} and outputs ${namesOf(output)}`;
    throw new OpenAiError(400, text, { param: "model", code: "model_not_supported" });
  }
  return { name, inputs, outputs: new Set(output.map((one) => one.name)), promptInput, textOutput };
}

function isRequiredText({ name, datatype, optional }: InputSlot): boolean {
  return datatype === "BYTES" && !optional && !OTHER_TEXTS.has(name);
}

function onlyOne<T>(values: readonly T[]): T | undefined {
  return values.length === 1 ? values[0] : undefined;
}

function namesOf(tensors: readonly { readonly name: string; readonly dataType: string }[]): string {
  return `[${tensors.map(({ name, dataType }) => `${name} (${dataType.replace(/^TYPE_/, "")})`).join(", ")}]`;
}
