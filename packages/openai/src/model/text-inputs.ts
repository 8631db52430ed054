import type { InferInit } from "@tritonjs/core/frontend";
import type { Tensor } from "@tritonjs/protocol";
import { invalidField, OpenAiError } from "../errors/openai-error.js";
import { requestJson } from "../fields/fields.js";
import type { Sampling } from "../fields/sampling-fields.js";
import { type SlotValue, tensorOf } from "./input-tensor.js";
import type { TextModel } from "./text-model.js";

/** One request to a text model, before it is tensors. */
export interface TextCall {
  /** Either a prompt, or messages with their tools. */
  readonly prompt?: string;
  readonly messages?: readonly unknown[];
  readonly tools?: readonly unknown[];
  readonly stream: boolean;
  readonly sampling: Sampling;
  readonly logprobs: boolean;
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
  if (prompt !== undefined && !put(model.promptInput!, prompt)) throw notOnePrompt(model);
  if (messages !== undefined) {
    put("messages", requestJson(messages, "messages"));
    // A model may require its prompt all the same.
    const { promptInput } = model;
    if (promptInput !== undefined && !model.inputs.get(promptInput)!.optional) put(promptInput, "");
  }
  if (tools !== undefined) put("tools", requestJson(tools, "tools"));
  put("stream", stream);
  put("exclude_input_in_output", true);
  put("sampling_param_exclude_input_from_output", true);
  put("return_finish_reason", true);
  put("return_num_input_tokens", true);
  put("return_num_output_tokens", true);
  if (logprobs && !put("return_logprobs", true)) withoutEffect("logprobs");
  if (model.inputs.has("sampling_parameters")) {
    put("sampling_parameters", requestJson(sampling, "sampling_parameters"));
  } else {
    putSampling(model, sampling, put, withoutEffect);
  }
  return { inputs, requestedOutputs: outputsFor(model, call) };
}

function putSampling(
  model: TextModel,
  sampling: Sampling,
  put: (name: string, value: SlotValue) => boolean,
  withoutEffect: (field: string) => void,
): void {
  putResponseFormat(model, sampling, put);
  for (const [field, value] of Object.entries(sampling)) {
    if (ONLY_IN_JSON.has(field)) continue;
    const names = TENSOR_NAMES[field] ?? [field];
    // The server itself looks for stop strings.
    if (!names.some((name) => put(name, value as SlotValue)) && field !== "stop") withoutEffect(field);
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
  const { type, json_schema } = format;
  const isPut =
    type === "json_schema"
      ? put("guided_decoding_guide_type", type) &&
        put("guided_decoding_guide", requestJson(json_schema?.schema, "response_format.json_schema.schema"))
      : put("guided_decoding_guide_type", "json");
  if (isPut) return;
  const text =
    `model '${model.name}' cannot constrain its output to ${type}: expected a model with the input ` +
    "'sampling_parameters' or 'guided_decoding_guide_type'";
  throw new OpenAiError(400, text, { param: "response_format", code: "unsupported_value" });
}

interface ResponseFormat {
  readonly type: string;
  readonly json_schema?: { readonly schema?: unknown };
}

/** The outputs that the answer needs. A model may have large ones beside them. */
function outputsFor({ outputs, textOutput }: TextModel, { logprobs, tools, messages }: TextCall): string[] {
  const wanted = ["finish_reason", "num_input_tokens", "num_output_tokens"];
  if (logprobs) wanted.push("logprobs");
  if (tools !== undefined && messages !== undefined) wanted.push("tool_calls");
  return [textOutput, ...wanted.filter((name) => outputs.has(name) && name !== textOutput)];
}

function notOnePrompt({ name, promptInput, inputs }: TextModel): OpenAiError {
  const shape = inputs.get(promptInput!)!.shape.join(", ");
  return invalidField(
    "model",
    `model '${name}': expected an input '${promptInput}' for one prompt, got shape [${shape}]`,
    "model_not_supported",
  );
}
