import { type ChatContentPart, type ChatMessage, type ChatTool, withTexts } from "../chat/chat-template.js";
import { readToolChoice, type ToolUse } from "../chat/forced-calls.js";
import { imageUrlOf, isImagePart } from "../chat/image-parts.js";
import { checkLength, emptyField, invalidField, missingField, shown, wrongType } from "./openai-error.js";
import {
  type Fields,
  MOST_TOKENS,
  objectFields,
  readChoices,
  readSampling,
  readStreamOptions,
  refuseFields,
  type Sampling,
  type StreamOptions,
} from "./request-fields.js";

export interface Chat {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  /** Undefined if the model may not call a tool. */
  readonly toolUse: ToolUse | undefined;
  /** True for the `tool_choice` `none`. */
  readonly forbidsCalls: boolean;
  readonly sampling: Sampling;
  readonly choices: number;
  /** Number of likely tokens to report for each token; undefined without logprobs. */
  readonly topLogprobs: number | undefined;
  readonly stream: StreamOptions;
  readonly variables: Readonly<Record<string, unknown>> | undefined;
  /** Whether the prompt ends with the beginning of the assistant's message. */
  readonly addGenerationPrompt: boolean;
  /** Whether the answer has the reasoning that is kept apart from its content. */
  readonly includeReasoning: boolean;
}

/** Largest `top_logprobs`, as in OpenAI's API. */
export const MOST_TOP_LOGPROBS = 20;

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
  const choices = readChoices(fields, maxChoices);
  const stream = readStreamOptions(fields);
  const topLogprobs = readChatLogprobs(fields);
  const most = fields.integer("max_tokens", 1, MOST_TOKENS);
  const maxTokens = fields.integer("max_completion_tokens", 1, MOST_TOKENS) ?? most ?? defaultMaxTokens;
  const sampling = readSampling(fields);
  if (maxTokens !== undefined) sampling.max_tokens = maxTokens;
  if (topLogprobs !== undefined) sampling.logprobs = topLogprobs;
  refuseUnsupported(fields);
  fields.object("chat_template_kwargs");
  const variables = fields.any("chat_template_kwargs") as Chat["variables"];
  const addGenerationPrompt = fields.boolean("add_generation_prompt") ?? true;
  return {
    model,
    messages,
    ...readToolUse(fields),
    sampling,
    choices,
    topLogprobs,
    stream,
    variables,
    addGenerationPrompt,
    includeReasoning: fields.boolean("include_reasoning") ?? true,
  };
}

/** Fields of OpenAI that would change the answer, with what to send or expect instead. */
const UNSUPPORTED_FIELDS: Readonly<Record<string, string>> = {
  functions: "send 'tools' instead",
  function_call: "send 'tool_choice' instead",
  audio: "models answer with text",
  web_search_options: "models do not search",
};

function refuseUnsupported(fields: Fields): void {
  refuseFields(fields, UNSUPPORTED_FIELDS);
  if (fields.array("modalities")?.some((one) => one !== "text") !== true) return;
  throw invalidField("modalities", "'modalities': expected text alone", "unsupported_parameter");
}

function readChatLogprobs(fields: Fields): number | undefined {
  const wanted = fields.boolean("logprobs") ?? false;
  const top = fields.integer("top_logprobs", 0, MOST_TOP_LOGPROBS);
  if (wanted) return top ?? 0;
  if (top === undefined) return undefined;
  // The words of Triton's OpenAI frontend.
  throw invalidField("top_logprobs", "`top_logprobs` can only be used when `logprobs` is True");
}

const MESSAGE_ROLES = ["system", "developer", "user", "assistant", "tool", "function"] as const;

/**
 * Reads and checks the messages of a chat.
 *
 * @throws OpenAiError 400 that names the message at fault
 */
export function readMessages(fields: Fields): readonly ChatMessage[] {
  const given = fields.array("messages");
  if (given === undefined) throw missingField("messages", "an array with at least one message");
  if (given.length === 0) throw emptyField("messages", "message");
  given.forEach((message, index) => {
    checkMessage(objectFields(message, `messages[${index}]`));
  });
  return given as readonly ChatMessage[];
}

function checkMessage(message: Fields): void {
  const role = message.choice("role", MESSAGE_ROLES);
  if (role === undefined) throw missingField(message.path("role"), `one of ${MESSAGE_ROLES.join(", ")}`);
  checkContent(message, role);
  const calls = message.array("tool_calls");
  if (role === "tool" && message.string("tool_call_id") === undefined) {
    const path = message.path("tool_call_id");
    const text = `'${path}': expected the id of the call that the message answers, got none`;
    throw invalidField(path, text, "missing_required_parameter");
  }
  calls?.forEach((call, index) => {
    const fields = objectFields(call, message.path(`tool_calls[${index}]`));
    const called = fields.requiredObject("function");
    called.requiredString("name");
    called.string("arguments");
  });
}

function checkContent(message: Fields, role: string): void {
  const content = message.any("content");
  const path = message.path("content");
  if (typeof content === "string") return;
  if (content === undefined) {
    const hasCalls = message.any("tool_calls") !== undefined || message.any("function_call") !== undefined;
    // A refusal has its text in `refusal`.
    if (role === "assistant" && (hasCalls || message.any("refusal") !== undefined)) return;
    throw missingField(path, "a string or an array of parts");
  }
  if (!Array.isArray(content)) throw wrongType(path, "a string or an array of parts", content);
  if (content.length === 0) throw emptyField(path, "part");
  content.forEach((part, index) => {
    const fields = objectFields(part, `${path}[${index}]`);
    const type = fields.requiredString("type");
    if (type === "image_url" && imageUrlOf(part as ChatContentPart) === undefined) {
      const url = fields.path("image_url.url");
      throw missingField(url, "a string with the address of the image, such as a data: URL");
    }
    if (type !== "text") return;
    if (fields.string("text") === undefined) throw wrongType(fields.path("text"), "a string", undefined);
  });
}

/**
 * The messages for a chat template, which takes text, and images for a model that takes them. The role `developer` is
 * newer than most templates and becomes `system`.
 *
 * @throws OpenAiError 400 for audio, a file, or an image to a model of text
 */
export function templateMessages(
  messages: readonly ChatMessage[],
  model: string,
  takesImages: boolean,
): readonly ChatMessage[] {
  return withTexts(messages).map((message, index) => {
    const { content, role } = message;
    if (Array.isArray(content)) {
      for (const [number, part] of (content as readonly ChatContentPart[]).entries()) {
        const { type } = part;
        if (type === "text" || (takesImages && isImagePart(part))) continue;
        const path = `messages[${index}].content[${number}]`;
        const takes = takesImages ? "text and images" : "only text";
        const text = `'${path}': expected text, got ${type}: model '${model}' takes ${takes}`;
        throw invalidField(path, text, "unsupported_content");
      }
    }
    return role === "developer" ? { ...message, role: "system" } : message;
  });
}

/** Largest number of tools in a request, as in OpenAI's API. */
export const MOST_TOOLS = 128;
const TOOL_NAME = /^[\w.-]{1,64}$/;

/**
 * Reads `tools`, `tool_choice` and `parallel_tool_calls`.
 *
 * @throws OpenAiError 400 that names the tool at fault
 */
export function readToolUse(fields: Fields): Pick<Chat, "toolUse" | "forbidsCalls"> {
  const given = fields.array("tools") ?? [];
  const parallel = fields.boolean("parallel_tool_calls") ?? true;
  checkLength("tools", given, MOST_TOOLS, "tools");
  const tools = given.map((tool, index) => readTool(objectFields(tool, `tools[${index}]`), tool));
  const read = readToolChoice(fields.any("tool_choice"), tools);
  if ("expected" in read) {
    throw invalidField("tool_choice", `'tool_choice': expected ${read.expected}, got ${shown(read.got)}`);
  }
  const forbidsCalls = read.choice === "none";
  return { toolUse: forbidsCalls || tools.length === 0 ? undefined : { ...read, parallel }, forbidsCalls };
}

function readTool(fields: Fields, tool: unknown): ChatTool {
  fields.choice("type", ["function"]);
  const described = fields.requiredObject("function");
  const name = described.requiredString("name");
  if (!TOOL_NAME.test(name)) {
    const path = described.path("name");
    const text = `'${path}': expected 1 to 64 letters, digits, '_', '.' or '-', got ${shown(name)}`;
    throw invalidField(path, text);
  }
  described.string("description");
  described.object("parameters");
  return { ...(tool as ChatTool), type: "function" };
}
