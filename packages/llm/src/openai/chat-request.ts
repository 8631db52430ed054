import { invalidField, shown, wrongType } from "./openai-error.js";
import {
  type Fields,
  MOST_TOKENS,
  objectFields,
  readSampling,
  readStreamOptions,
  type Sampling,
  type StreamOptions,
} from "./request-fields.js";

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
const MOST_TOP_LOGPROBS = 20;

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

/** A message of a chat, as the request has it. */
export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly [member: string]: unknown;
}

const MESSAGE_ROLES = ["system", "developer", "user", "assistant", "tool", "function"] as const;

/**
 * Reads and checks the messages of a chat.
 *
 * @throws OpenAiError 400 that names the message at fault
 */
export function readMessages(fields: Fields): readonly Message[] {
  const given = fields.array("messages");
  if (given === undefined) {
    const text = "you must provide 'messages': expected an array with at least one message";
    throw invalidField("messages", text, "missing_required_parameter");
  }
  if (given.length === 0) {
    throw invalidField("messages", "'messages': expected at least one message, got none", "empty_array");
  }
  given.forEach((message, index) => {
    checkMessage(objectFields(message, `messages[${index}]`));
  });
  return given as readonly Message[];
}

function checkMessage(message: Fields): void {
  const role = message.choice("role", MESSAGE_ROLES);
  if (role === undefined) {
    const path = message.path("role");
    const text = `you must provide '${path}': expected one of ${MESSAGE_ROLES.join(", ")}`;
    throw invalidField(path, text, "missing_required_parameter");
  }
  checkContent(message, role);
  const calls = message.array("tool_calls");
  if (role === "tool" && message.string("tool_call_id") === undefined) {
    const path = message.path("tool_call_id");
    throw invalidField(
      path,
      `'${path}': expected the id of the call that the message answers, got none`,
      "missing_required_parameter",
    );
  }
  calls?.forEach((call, index) => {
    const fields = objectFields(call, message.path(`tool_calls[${index}]`));
    const called = fields.object("function");
    if (called === undefined) throw wrongType(fields.path("function"), "an object", undefined);
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
    throw invalidField(
      path,
      `you must provide '${path}': expected a string or an array of parts`,
      "missing_required_parameter",
    );
  }
  if (!Array.isArray(content)) throw wrongType(path, "a string or an array of parts", content);
  if (content.length === 0)
    throw invalidField(path, `'${path}': expected at least one part, got none`, "empty_array");
  content.forEach((part, index) => {
    const fields = objectFields(part, `${path}[${index}]`);
    const type = fields.requiredString("type");
    if (type !== "text") return;
    if (fields.string("text") === undefined) throw wrongType(fields.path("text"), "a string", undefined);
  });
}

/**
 * The messages for a chat template, which takes text only. The role `developer` is newer than most templates and
 * becomes `system`.
 *
 * @throws OpenAiError 400 for an image, audio or a file
 */
export function textMessages(messages: readonly Message[], model: string): readonly Message[] {
  return messages.map((message, index) => {
    const { content, role } = message;
    if (Array.isArray(content)) {
      for (const [part, { type }] of (content as { type: string }[]).entries()) {
        if (type === "text") continue;
        const path = `messages[${index}].content[${part}]`;
        throw invalidField(
          path,
          `'${path}': expected text, got ${type}: model '${model}' takes only text`,
          "unsupported_content",
        );
      }
    }
    return role === "developer" ? { ...message, role: "system" } : message;
  });
}

/** A function that the model may call. */
export interface Tool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string;
    readonly parameters?: Readonly<Record<string, unknown>>;
  };
}

/** Calls that the model may make: none, as it likes, at least one, or one of a named function. */
type ToolChoice = "none" | "auto" | "required" | { readonly name: string };

/** The tools of a request. Without any, the prompt mentions no tools. */
export interface ToolUse {
  readonly tools: readonly Tool[];
  readonly choice: ToolChoice;
  /** Whether the model may call several functions in one answer. */
  readonly parallel: boolean;
}

/** Largest number of tools in a request, as in OpenAI's API. */
export const MOST_TOOLS = 128;
const TOOL_NAME = /^[\w.-]{1,64}$/;

/**
 * Reads `tools`, `tool_choice` and `parallel_tool_calls`.
 *
 * @returns undefined if the model may not call a tool
 * @throws OpenAiError 400 that names the tool at fault
 */
export function readToolUse(fields: Fields): ToolUse | undefined {
  const given = fields.array("tools") ?? [];
  const parallel = fields.boolean("parallel_tool_calls") ?? true;
  if (given.length > MOST_TOOLS) {
    throw invalidField(
      "tools",
      `'tools': expected at most ${MOST_TOOLS} tools, got ${given.length}`,
      "array_above_max_length",
    );
  }
  const tools = given.map((tool, index) => readTool(objectFields(tool, `tools[${index}]`), tool));
  const choice = readToolChoice(fields.any("tool_choice"), tools);
  if (choice === "none" || tools.length === 0) return undefined;
  return {
    tools: typeof choice === "object" ? tools.filter((tool) => isNamed(tool, choice)) : tools,
    choice,
    parallel,
  };
}

function readTool(fields: Fields, tool: unknown): Tool {
  fields.choice("type", ["function"]);
  const described = fields.object("function");
  if (described === undefined) throw wrongType(fields.path("function"), "an object", undefined);
  const name = described.requiredString("name");
  if (!TOOL_NAME.test(name)) {
    const path = described.path("name");
    throw invalidField(
      path,
      `'${path}': expected 1 to 64 letters, digits, '_', '.' or '-', got ${shown(name)}`,
    );
  }
  described.string("description");
  described.object("parameters");
  return { ...(tool as Tool), type: "function" };
}

function readToolChoice(value: unknown, tools: readonly Tool[]): ToolChoice {
  if (value === undefined) return "auto";
  if (value === "none") return value;
  if (value === "auto" || value === "required") {
    if (tools.length > 0 || value === "auto") return value;
    throw invalidField("tool_choice", "'tool_choice': expected 'tools' beside it, got none");
  }
  const fields = objectFields(value, "tool_choice");
  fields.choice("type", ["function"]);
  const name = (fields.object("function") ?? fields).requiredString("name");
  if (!tools.some((tool) => isNamed(tool, { name }))) {
    throw invalidField(
      "tool_choice",
      `'tool_choice': expected the name of one of the tools, got ${shown(name)}`,
    );
  }
  return { name };
}

function isNamed(tool: Tool, { name }: { readonly name: string }): boolean {
  return tool.function.name === name;
}
