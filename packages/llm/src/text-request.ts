import type { TensorSpec } from "@tritonjs/core";
import { errorFor, type Parameters, type Tensor, type TritonError } from "@tritonjs/protocol";
import type { AnswerReader } from "./chat/answer-reader.js";
import type { ChatMessage, ChatTool } from "./chat/chat-template.js";
import { readToolChoice, type ToolChoice, type ToolUse } from "./chat/forced-calls.js";
import {
  invalidParameter,
  ParameterFields,
  type ResponseFormat,
  type SamplingParameters,
  samplingParametersOf,
} from "./sampling/sampling-parameters.js";

/*
 * The tensors of a text model: those of vLLM's Triton backend, and after them those of this library. So a client of
 * vLLM in Triton, `generate`, gRPC streams and the OpenAI endpoints all call the same model.
 */

/**
 * Inputs of a text model. A request has `text_input`, or `messages` of a chat.
 *
 * - `sampling_parameters`: a JSON object with the field names of OpenAI and vLLM, such as `max_tokens` and `top_k`.
 *   Without it, the request's parameters of these names are used.
 * - `stream`: true for one response for each piece of text; false for a single response.
 * - `exclude_input_in_output`: without it, a streamed text excludes the prompt, and a single response begins with it.
 * - `messages`, `tools`: JSON arrays, as in `chat/completions` of OpenAI's API.
 */
export const TEXT_INPUTS = [
  { name: "text_input", dtype: "BYTES", shape: [1], optional: true },
  { name: "stream", dtype: "BOOL", shape: [1], optional: true },
  { name: "sampling_parameters", dtype: "BYTES", shape: [1], optional: true },
  { name: "exclude_input_in_output", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_finish_reason", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_logprobs", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_num_input_tokens", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_num_output_tokens", dtype: "BOOL", shape: [1], optional: true },
  { name: "return_reasoning_content", dtype: "BOOL", shape: [1], optional: true },
  { name: "messages", dtype: "BYTES", shape: [1], optional: true },
  { name: "tools", dtype: "BYTES", shape: [1], optional: true },
] as const satisfies readonly TensorSpec[];

/**
 * Outputs of a text model. All but `text_output` are sent when the request asks for them.
 *
 * - `finish_reason`: `stop`, `length` or `tool_calls` in the last response, `null` before.
 * - `logprobs`: a JSON array with an object for each token: from its number to `{ logprob, rank, decoded_token }`, for
 *   the token that was chosen (always the first key) and for the most likely ones. `null` without logprobs.
 * - `num_output_tokens`: the tokens of this response, not their sum.
 * - `tool_calls`: a JSON array of deltas `{ index, id?, type?, function: { name?, arguments? } }`, as chunks of OpenAI
 *   have them, from models that write calls of tools themselves. Empty for a response without any.
 * - `reasoning_content`: the reasoning, or the next piece of it, from models that know it. The text then has none. For a
 *   request that does not ask for it, reasoning that the text has stays in it.
 */
export const TEXT_OUTPUTS = [
  { name: "text_output", dtype: "BYTES", shape: [1] },
  { name: "finish_reason", dtype: "BYTES", shape: [1] },
  { name: "logprobs", dtype: "BYTES", shape: [1] },
  { name: "num_input_tokens", dtype: "UINT32", shape: [1] },
  { name: "num_output_tokens", dtype: "UINT32", shape: [1] },
  { name: "tool_calls", dtype: "BYTES", shape: [1] },
  { name: "reasoning_content", dtype: "BYTES", shape: [1] },
] as const satisfies readonly TensorSpec[];

/** The tokens of a prompt, in place of its text. */
const PROMPT_TOKENS = { name: "input_ids", dtype: "INT32", shape: [-1], optional: true } as const;

/** Inputs of a text model that takes tokens too. */
export const TOKEN_INPUTS = [...TEXT_INPUTS, PROMPT_TOKENS] as const satisfies readonly TensorSpec[];

/** Images of a prompt, for a model that takes them: files, or their base64 as vLLM's backend takes it. */
export const IMAGE_INPUT = { name: "image", dtype: "BYTES", shape: [-1], optional: true } as const;

/** Inputs of a decoder, which leaves reasoning in the text. */
export const DECODER_INPUTS = TOKEN_INPUTS.filter(({ name }) => name !== "return_reasoning_content");

/**
 * Outputs of a decoder. Calls of tools and reasoning are part of the text.
 *
 * - `prompt_logprobs`: like `logprobs`, for the tokens of the prompt, in the first response to a request with the
 *   sampling parameter of this name. The first token of a prompt has no probability.
 */
export const DECODER_OUTPUTS = [
  ...TEXT_OUTPUTS.filter(({ name }) => name !== "tool_calls" && name !== "reasoning_content"),
  { name: "prompt_logprobs", dtype: "BYTES", shape: [1] },
] as const satisfies readonly TensorSpec[];

/** A request as its tensors, on the server's thread or in a worker. */
interface TextRequestSource {
  readonly inputs: ReadonlyMap<string, Tensor>;
  readonly parameters: Parameters;
  readonly requestedOutputs: readonly string[];
}

const PREFIX_IN_STREAM =
  "Error generating stream: When streaming, `exclude_input_in_output` = False is not allowed.";

/**
 * Reads a request to a text model.
 *
 * @throws TritonError INVALID_ARG that names the input, the expected and the given value.
 */
export function readTextRequest(request: TextRequestSource, modelName: string): TextRequest {
  const { inputs, parameters, requestedOutputs } = request;
  const prompt = textInput(inputs, "text_input");
  const chat = textInput(inputs, "messages");
  const tokens = inputs.get("input_ids");
  const given = [prompt, chat, tokens].filter((one) => one !== undefined).length;
  if (given !== 1) {
    const got = given === 0 ? "none of them" : given === 2 ? "both" : "all";
    const expected = "expected one of the inputs 'text_input' and 'messages'";
    throw invalidRequest(`model '${modelName}': ${expected}, got ${got}`);
  }
  const tools = textInput(inputs, "tools");
  const stream = flagInput(inputs, "stream") ?? false;
  const excludePrompt = flagInput(inputs, "exclude_input_in_output");
  if (stream && excludePrompt === false) throw invalidRequest(PREFIX_IN_STREAM);
  const fields = new ParameterFields({ json: textInput(inputs, "sampling_parameters"), parameters });
  const wants = (output: string) =>
    flagInput(inputs, `return_${output}`) === true || requestedOutputs.includes(output);
  return {
    prompt,
    images: ((inputs.get(IMAGE_INPUT.name)?.elements ?? []) as readonly Uint8Array[]).map(imageFile),
    promptTokens: tokens && Array.from(tokens.elements as Iterable<number>, Number),
    messages: chat === undefined ? undefined : parseMessages(chat),
    ...readToolUse(fields, tools === undefined ? undefined : parseTools(tools)),
    sampling: samplingParametersOf(fields),
    ...readTemplateSettings(fields),
    stream,
    excludesPrompt: excludePrompt === true,
    prefix: stream || excludePrompt === true ? "" : (prompt ?? ""),
    wanted: {
      finishReason: wants("finish_reason"),
      logprobs: wants("logprobs"),
      inputTokens: wants("num_input_tokens"),
      outputTokens: wants("num_output_tokens"),
      toolCalls: requestedOutputs.includes("tool_calls"),
      reasoning: wants("reasoning_content"),
      promptLogprobs: requestedOutputs.includes("prompt_logprobs"),
    },
  };
}

type Inputs = TextRequestSource["inputs"];

/** Characters to look at: no image begins with as many that base64 has too. */
const LOOKED_AT = 64;

function imageFile(given: Uint8Array): Uint8Array {
  const begin = Buffer.from(given.subarray(0, LOOKED_AT)).toString("latin1");
  return /^[A-Za-z0-9+/]+={0,2}$/.test(begin)
    ? Buffer.from(Buffer.from(given).toString("latin1"), "base64")
    : given;
}

function textInput(inputs: Inputs, name: string): string | undefined {
  const element = inputs.get(name)?.elements[0];
  if (element === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(element as Uint8Array);
  } catch (cause) {
    throw invalidRequest(`input '${name}': expected text in UTF-8, got other bytes`, cause);
  }
}

function flagInput(inputs: Inputs, name: string): boolean | undefined {
  const element = inputs.get(name)?.elements[0];
  return element === undefined ? undefined : Boolean(element);
}

function invalidRequest(message: string, cause?: unknown): TritonError {
  return errorFor("INVALID_INPUT", message, { cause });
}

/** First argument of the callback of {@link textGenerator}: a prompt, or the messages of a chat. */
export interface GeneratorRequest extends TemplateSettings {
  /** The prompt. Undefined for a chat, unless the option `chatTemplate` makes a prompt of it. */
  readonly prompt: string | undefined;
  /** The messages of a chat. Undefined for a plain prompt. */
  readonly messages: readonly ChatMessage[] | undefined;
  /** Tools that the model may call: those that `tool_choice` allows. Undefined without any. */
  readonly tools: readonly ChatTool[] | undefined;
  /**
   * Calls that the model may make: `none`, as it likes (`auto`), at least one (`required`), or one of the tool `name`.
   * Only a generator that {@link TextGeneratorOptions.obeys} it gets the last two. Undefined without tools.
   */
  readonly toolChoice: ToolChoice | undefined;
  /** False if the model may make one call only. Further calls are left out of the answer. */
  readonly parallelToolCalls: boolean;
  /**
   * Form that the text must have. Only a generator that {@link TextGeneratorOptions.obeys} it gets another one than
   * `text`. Undefined if the request asks for none.
   */
  readonly responseFormat: ResponseFormat | undefined;
  /** How the client wants the text to be chosen. Undefined members are for the engine to decide. */
  readonly sampling: SamplingParameters;
}

/** Outputs that a request asks for besides `text_output`. */
interface WantedOutputs {
  readonly finishReason: boolean;
  readonly logprobs: boolean;
  readonly inputTokens: boolean;
  readonly outputTokens: boolean;
  /** True if `tool_calls` is sent even without calls. */
  readonly toolCalls: boolean;
  /** True if reasoning is kept apart from the text. */
  readonly reasoning: boolean;
  /** True if the first response has the probabilities of the prompt's tokens. */
  readonly promptLogprobs: boolean;
}

/** A request to a text model, with the parts that a callback need not know. */
export interface TextRequest extends Omit<GeneratorRequest, "responseFormat"> {
  /** The tokens of the prompt, in place of its text. */
  readonly promptTokens: readonly number[] | undefined;
  /** Files of images that the prompt has, in their order. Those of messages are in the messages. */
  readonly images: readonly Uint8Array[];
  /** True for one response for each piece of text. */
  readonly stream: boolean;
  /** True if the answer must not begin with the prompt. */
  readonly excludesPrompt: boolean;
  /** Text that the single response begins with. */
  readonly prefix: string;
  readonly wanted: WantedOutputs;
  /** Finds calls of tools and reasoning in the text; undefined if they stay in it. */
  readonly reader?: AnswerReader | undefined;
}

/** The tools of a request, for an engine that holds its text to a call. */
export function toolUseOf({ tools = [], toolChoice, parallelToolCalls }: TextRequest): ToolUse {
  return { tools, choice: toolChoice ?? "auto", parallel: parallelToolCalls };
}

/**
 * Reads `tool_choice` and `parallel_tool_calls`, as OpenAI's API has them. For the choice `none` there are no tools.
 *
 * @throws TritonError INVALID_ARG for another choice, or a tool that the request does not have
 */
function readToolUse(
  fields: ParameterFields,
  given: readonly ChatTool[] | undefined,
): Pick<TextRequest, "tools" | "toolChoice" | "parallelToolCalls"> {
  const parallelToolCalls = fields.boolean("parallel_tool_calls") ?? true;
  const value = fields.raw("tool_choice")?.value;
  const read = readToolChoice(value, given ?? []);
  if ("expected" in read) throw invalidParameter("tool_choice", read.expected, read.got);
  const { tools, choice } = read;
  if (choice !== "none" && tools.length > 0) return { tools, toolChoice: choice, parallelToolCalls };
  return { tools: undefined, toolChoice: choice === "none" ? choice : undefined, parallelToolCalls };
}

/**
 * Reads the JSON of the input `messages`.
 *
 * @throws TritonError INVALID_ARG for anything but an array of messages.
 */
function parseMessages(json: string): readonly ChatMessage[] {
  const messages = readArray("messages", json);
  if (messages.length === 0) throw invalidInput("messages", "at least one message", "none");
  messages.forEach((message, i) => {
    const { role, content } = Object(message) as Partial<ChatMessage>;
    if (typeof role !== "string" || role === "") {
      throw invalidInput(`messages[${i}]`, "an object with a role", describe(message));
    }
    const hasContent = content === undefined || content === null || typeof content === "string";
    if (!hasContent && !Array.isArray(content)) {
      throw invalidInput(`messages[${i}].content`, "a string, an array of parts or null", describe(content));
    }
  });
  return messages as readonly ChatMessage[];
}

/**
 * Reads the JSON of the input `tools`. Undefined for an empty array.
 *
 * @throws TritonError INVALID_ARG for anything but an array of tools.
 */
function parseTools(json: string): readonly ChatTool[] | undefined {
  const tools = readArray("tools", json);
  tools.forEach((tool, i) => {
    const name = (Object(tool) as Partial<ChatTool>).function?.name;
    if (typeof name !== "string" || name === "") {
      throw invalidInput(`tools[${i}]`, "{ type: 'function', function: { name, ... } }", describe(tool));
    }
  });
  return tools.length === 0 ? undefined : (tools as readonly ChatTool[]);
}

function readArray(input: string, json: string): readonly unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw invalidInput(input, "a JSON array", `text that is not JSON (${(cause as Error).message})`, cause);
  }
  if (!Array.isArray(value)) throw invalidInput(input, "a JSON array", describe(value));
  return value;
}

function invalidInput(what: string, expected: string, got: string, cause?: unknown): TritonError {
  return errorFor("INVALID_INPUT", `input '${what}': expected ${expected}, got ${got}`, { cause });
}

function describe(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}

/** How a request wants its messages to be rendered. */
interface TemplateSettings {
  /** Further variables of the chat template, such as `enable_thinking`: `chat_template_kwargs` of vLLM. */
  readonly templateVariables: Readonly<Record<string, unknown>> | undefined;
  /** True to end the prompt with the beginning of the answer: `add_generation_prompt`. */
  readonly addGenerationPrompt: boolean;
}

/** @throws TritonError INVALID_ARG for variables that are not an object */
function readTemplateSettings(fields: ParameterFields): TemplateSettings {
  const name = "chat_template_kwargs";
  const variables = fields.raw(name)?.value;
  if (variables !== undefined && (typeof variables !== "object" || Array.isArray(variables)))
    throw invalidParameter(name, "an object", variables);
  return {
    templateVariables: variables as TemplateSettings["templateVariables"],
    addGenerationPrompt: fields.boolean("add_generation_prompt") ?? true,
  };
}
