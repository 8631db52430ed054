import {
  type DataType,
  type Elements,
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  Tensor,
} from "@tritonjs/protocol";
import type { InferInit } from "@tritonjs/server";
import { invalidField, type OpenAiError } from "./openai-error.js";
import { requestJson, type Sampling } from "./request-fields.js";

/** Inputs and outputs of a model that generates text. */
export interface TextModel {
  readonly name: string;
  readonly inputs: ReadonlyMap<string, InputSlot>;
  readonly outputs: ReadonlySet<string>;
  /** Input for a prompt; undefined for a model that takes only messages. */
  readonly promptInput: string | undefined;
  readonly textOutput: string;
  readonly takesImages: boolean;
}

/** Input for the images of a prompt, as vLLM's backend has it. */
const IMAGES = "image";

/** Inputs of BYTES that are not a prompt. */
const OTHER_TEXTS = new Set(["messages", "tools", "sampling_parameters", "embedding_request", IMAGES]);

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
    model = describeTextModel(config);
    described.set(config, model);
  }
  return model;
}

function describeTextModel({ name, input, output, maxBatchSize }: ModelConfig): TextModel {
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
    throw invalidField("model", text, "model_not_supported");
  }
  const outputs = new Set(output.map((one) => one.name));
  return { name, inputs, outputs, promptInput, textOutput, takesImages: inputs.has(IMAGES) };
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

/** One request to a text model, before it is tensors. */
export interface TextCall {
  /** Either a prompt, or messages with their tools. */
  readonly prompt?: string | readonly number[];
  /** JSON of the messages. */
  readonly messages?: string;
  /** Images of a prompt in base64. */
  readonly images?: readonly string[] | undefined;
  readonly tools?: readonly unknown[];
  readonly stream: boolean;
  readonly sampling: Sampling;
  readonly logprobs: boolean;
  /** Whether a model that knows its reasoning keeps it apart from the text. */
  readonly reasoning?: boolean | undefined;
  /** Whether the model reports the tokens of the prompt with their probabilities. */
  readonly promptLogprobs?: boolean | undefined;
  /** Field for the structure of the text, for a model of vLLM's backend. @default that of its newest release */
  readonly structureField?: StructureField | undefined;
}

/**
 * Inputs of models without `sampling_parameters`, by the names of TensorRT-LLM in Triton. Others have the field's name.
 */
const TENSOR_NAMES: Readonly<Record<string, readonly string[]>> = {
  max_tokens: ["max_tokens", "request_output_len"],
  stop: ["stop_words", "stop"],
  seed: ["seed", "random_seed"],
  min_tokens: ["min_tokens", "min_length"],
};

/** Fields that only models with `sampling_parameters` can have an input for. */
const ONLY_IN_JSON = new Set([
  ...["logprobs", "response_format", "tool_choice", "parallel_tool_calls"],
  ...["chat_template_kwargs", "add_generation_prompt"],
]);

/**
 * Makes the inputs of a request. All sampling fields go as JSON to a model with `sampling_parameters`, and else to
 * inputs of their own.
 *
 * @param withoutEffect called with each field that the model has no input for
 * @throws OpenAiError 400 for a response format that the model cannot take
 */
export function textInputs(
  model: TextModel,
  call: TextCall,
  withoutEffect: (field: string) => void,
): Pick<InferInit, "inputs" | "requestedOutputs"> {
  const inputs = new Map<string, Tensor>();
  const put = (name: string, value: SlotValue): boolean => {
    const slot = model.inputs.get(name);
    const tensor = slot && tensorOf(slot, value);
    if (tensor !== undefined) inputs.set(name, tensor);
    return tensor !== undefined;
  };
  const { prompt, messages, tools, stream, sampling, logprobs } = call;
  if (typeof prompt === "string" && !put(model.promptInput!, prompt)) throw notOnePrompt(model);
  if (Array.isArray(prompt) && !put("input_ids", prompt as readonly number[])) throw takesNoTokens(model);
  if (messages !== undefined) {
    put("messages", messages);
    // A model may require its prompt all the same.
    const { promptInput } = model;
    if (promptInput !== undefined && !model.inputs.get(promptInput)!.optional) put(promptInput, "");
  }
  if (call.images !== undefined && call.images.length > 0) put(IMAGES, call.images);
  if (tools !== undefined) put("tools", requestJson(tools, "tools"));
  put("stream", stream);
  put("exclude_input_in_output", true);
  put("sampling_param_exclude_input_from_output", true);
  put("return_finish_reason", true);
  put("return_num_input_tokens", true);
  put("return_num_output_tokens", true);
  if (logprobs && !put("return_logprobs", true)) withoutEffect("logprobs");
  if (model.inputs.has("sampling_parameters")) {
    const fields = model.inputs.has("messages") ? sampling : withStructure(sampling, call.structureField);
    put("sampling_parameters", requestJson(fields, "sampling_parameters"));
  } else {
    putSampling(model, sampling, put, withoutEffect);
  }
  return { inputs, requestedOutputs: outputsFor(model, call) };
}

const GUIDES = ["json", "regex", "choice", "grammar"] as const;

/**
 * Field of `sampling_parameters` that has the structure of the text in vLLM's Triton backend: `structured_outputs` from
 * release 25.11 on, `guided_decoding` before. Each release refuses a request with the other's field.
 */
export const STRUCTURE_FIELDS = ["structured_outputs", "guided_decoding"] as const;

/** One of {@link STRUCTURE_FIELDS}. */
export type StructureField = (typeof STRUCTURE_FIELDS)[number];

/**
 * Sampling fields as vLLM's Triton backend takes them: the structure of the text in one field, a string with JSON. The
 * backend refuses a request with `response_format` or `guided_json`. Models with the input `messages` are not vLLM's,
 * and get OpenAI's fields unchanged.
 *
 * @throws OpenAiError 400 for several structures
 */
function withStructure(
  { response_format, ...sampling }: Sampling,
  field: StructureField = STRUCTURE_FIELDS[0],
): Sampling {
  const guides: [string, unknown][] = [];
  if (response_format !== undefined) {
    const schema = formatSchema(response_format as ResponseFormat);
    guides.push(schema === undefined ? ["json_object", true] : ["json", schema]);
  }
  for (const guide of GUIDES) {
    const name = `guided_${guide}`;
    if (sampling[name] === undefined) continue;
    guides.push([guide, guide === "json" ? schemaOf(sampling[name]) : sampling[name]]);
    delete sampling[name];
  }
  if (guides.length > 1) {
    const names = guides.map(([name]) => name).join(" and ");
    throw invalidField(
      "response_format",
      `'response_format': expected one structure of the text, got ${names}`,
    );
  }
  if (guides.length === 0) return sampling;
  return { ...sampling, [field]: requestJson(Object.fromEntries(guides), "response_format") };
}

/** The backend takes a schema only as an object, while vLLM's own server also takes its text. */
function schemaOf(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    throw invalidField("guided_json", "'guided_json': expected a JSON schema, got text that is not JSON");
  }
}

function putSampling(
  model: TextModel,
  sampling: Sampling,
  put: (name: string, value: SlotValue) => boolean,
  withoutEffect: (field: string) => void,
): void {
  putResponseFormat(model, sampling, put);
  for (const [field, value] of Object.entries(sampling)) {
    const isDemand = demands(field, value);
    if (ONLY_IN_JSON.has(field) && !isDemand) continue;
    const names = TENSOR_NAMES[field] ?? [field];
    if (names.some((name) => put(name, value as SlotValue))) continue;
    if (isDemand) throw cannotObey(model, field);
    // The server itself looks for stop strings.
    if (field !== "stop") withoutEffect(field);
  }
}

/** Passes a format on as TensorRT-LLM takes it. */
function putResponseFormat(
  model: TextModel,
  sampling: Sampling,
  put: (name: string, value: SlotValue) => boolean,
): void {
  const format = sampling.response_format as ResponseFormat | undefined;
  if (format === undefined) return;
  const schema = formatSchema(format);
  const isPut =
    schema === undefined
      ? put("guided_decoding_guide_type", "json")
      : put("guided_decoding_guide_type", "json_schema") &&
        put("guided_decoding_guide", requestJson(schema, "response_format.schema"));
  if (isPut) return;
  const text =
    `model '${model.name}' cannot constrain its output to ${format.type}: expected a model with the input ` +
    "'sampling_parameters' or 'guided_decoding_guide_type'";
  throw invalidField("response_format", text, "unsupported_value");
}

interface ResponseFormat {
  readonly type: string;
  readonly schema?: unknown;
  readonly json_schema?: { readonly schema?: unknown };
}

/** The schema of a format; undefined for any object. */
function formatSchema({ type, schema, json_schema }: ResponseFormat): unknown {
  return type === "json_schema" ? json_schema?.schema : schema;
}

/** True for a field that an answer must obey, so that a model without an input for it refuses the request. */
function demands(field: string, value: unknown): boolean {
  return field.startsWith("guided_") || (field === "tool_choice" && value !== "auto" && value !== "none");
}

function cannotObey({ name }: TextModel, field: string): OpenAiError {
  const text = `'${field}': model '${name}' cannot obey it: expected a model with the input 'sampling_parameters'`;
  return invalidField(field, text, "unsupported_value");
}

/** The outputs that the answer needs. A model may have large ones beside them. */
function outputsFor(
  { outputs, textOutput }: TextModel,
  { logprobs, promptLogprobs, tools, messages, reasoning }: TextCall,
): string[] {
  const wanted = ["finish_reason", "num_input_tokens", "num_output_tokens"];
  if (logprobs) wanted.push("logprobs");
  if (reasoning) wanted.push("reasoning_content");
  if (promptLogprobs) wanted.push("prompt_logprobs");
  if (tools !== undefined && messages !== undefined) wanted.push("tool_calls");
  return [textOutput, ...wanted.filter((name) => outputs.has(name) && name !== textOutput)];
}

function takesNoTokens({ name }: TextModel): OpenAiError {
  const text = `model '${name}' cannot take a prompt of tokens: expected an input 'input_ids', got none. Send text`;
  return invalidField("prompt", text, "unsupported_value");
}

function notOnePrompt({ name, promptInput, inputs }: TextModel): OpenAiError {
  const shape = inputs.get(promptInput!)!.shape.join(", ");
  const text = `model '${name}': expected an input '${promptInput}' for one prompt, got shape [${shape}]`;
  return invalidField("model", text, "model_not_supported");
}

/** An input of a model as requests give it: its shape includes the batch axis. */
export interface InputSlot {
  readonly name: string;
  readonly datatype: DataType;
  /** -1 for an open dimension. */
  readonly shape: readonly number[];
  readonly optional: boolean;
}

/** A value of one element, or of several in a row. */
export type SlotValue = string | number | boolean | readonly (string | number)[];

/** Reads an input of a configuration; undefined for a data type that requests cannot have. */
export function inputSlot(
  { name, dataType, dims, optional }: ModelInput,
  maxBatchSize: number,
): InputSlot | undefined {
  const datatype = fromConfigDataType(dataType);
  if (datatype === undefined) return undefined;
  return { name, datatype, optional, shape: [...(maxBatchSize > 0 ? [1] : []), ...dims] };
}

/** Makes a tensor of a value; undefined if the input cannot hold it. */
export function tensorOf({ datatype, shape }: InputSlot, value: SlotValue): Tensor | undefined {
  const values = Array.isArray(value) ? (value as readonly (string | number)[]) : [value as string | number];
  const fitted = fitShape(shape, values.length);
  const elements = fitted && elementsOf(datatype, values);
  return elements && Tensor.fromElements(datatype, fitted, elements);
}

/** The shape for `count` elements: the innermost open dimension takes those that the fixed ones leave. */
function fitShape(shape: readonly number[], count: number): number[] | undefined {
  const fixed = shape.reduce((product, size) => (size === -1 ? product : product * size), 1);
  const open = shape.lastIndexOf(-1);
  if (open < 0 ? count !== fixed : count % fixed !== 0) return undefined;
  return shape.map((size, axis) => (size !== -1 ? size : axis === open ? count / fixed : 1));
}

/** Makes the elements of the data types that numbers in a request become. */
const ELEMENTS: Readonly<Partial<Record<DataType, (numbers: readonly number[]) => Elements>>> = {
  BOOL: (numbers) => Uint8Array.from(numbers, (value) => (value === 0 ? 0 : 1)),
  INT32: (numbers) => Int32Array.from(numbers),
  UINT32: (numbers) => Uint32Array.from(numbers),
  INT64: (numbers) => BigInt64Array.from(numbers, BigInt),
  UINT64: (numbers) => BigUint64Array.from(numbers, BigInt),
  FP32: (numbers) => Float32Array.from(numbers),
  FP64: (numbers) => Float64Array.from(numbers),
};

function elementsOf(datatype: DataType, values: readonly (string | number)[]): Elements | undefined {
  const texts = values.filter((value) => typeof value === "string");
  if (datatype === "BYTES" && texts.length === values.length) return texts.map((text) => Buffer.from(text));
  return texts.length > 0 ? undefined : ELEMENTS[datatype]?.(values.map(Number));
}
