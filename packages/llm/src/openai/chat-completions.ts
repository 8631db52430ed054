import type { Exchange } from "@tritonjs/core/frontend";
import type { ChatTemplate } from "../chat/chat-template.js";
import type { ToolCallPiece } from "../chat/tool-call-family.js";
import { createToolCallReader } from "../chat/tool-call-reader.js";
import { chatAnswer, chatEvents, collectAnswer, streamAnswer } from "./answers.js";
import { type Chat, readChatRequest, type Tool, type ToolUse, textMessages } from "./chat-request.js";
import { type GenerationPlan, type PromptCall, planGeneration, type ToolCallText } from "./generation.js";
import { OpenAiError } from "./openai-error.js";
import {
  jsonResult,
  lookUpModel,
  newId,
  type OpenAiExchange,
  type OpenAiRoute,
  readRequest,
} from "./openai-exchange.js";
import type { Sampling } from "./request-fields.js";
import { type TextCall, type TextModel, textModelOf } from "./text-model.js";

/** Route of chats: `POST /v1/chat/completions`. */
export const chatRoute: OpenAiRoute = {
  path: /^\/v1\/chat\/completions$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const chat = await readRequest(exchange, (fields) => readChatRequest(fields, exchange));
    const call = await lookUpModel(exchange, chat.model);
    const template = await exchange.templates.find(call.model);
    const plan = planChat(exchange, call, template, chat);
    const { model, choices, topLogprobs, stream } = chat;
    const options = { model, choices, topLogprobs, includeUsage: stream.includeUsage };
    if (stream.stream) return streamAnswer(exchange, plan, chatEvents(options));
    return jsonResult(chatAnswer(await collectAnswer(exchange, plan), options));
  },
};

/**
 * Plans the requests for a chat. The messages go to the model as they are if it has an input for them. Otherwise a chat
 * template makes a prompt of them.
 *
 * @throws OpenAiError 400 for a model that cannot take the chat; TritonError INVALID_ARG if the template rejects it
 */
export function planChat(
  exchange: OpenAiExchange,
  call: Exchange,
  template: ChatTemplate | undefined,
  chat: Chat,
): GenerationPlan {
  const model = textModelOf(call.current().config);
  const takesTools = chat.toolUse === undefined || model.inputs.has("tools");
  const takesMessages = model.inputs.has("messages") && !exchange.templates.isChosen(model.name);
  const chosen =
    takesMessages && (takesTools || template === undefined)
      ? callWithMessages(exchange, model, template, chat)
      : callWithPrompt(exchange, model, template, chat);
  const { choices, stream, topLogprobs } = chat;
  const logprobs = topLogprobs !== undefined;
  const isCallNamed = typeof chat.toolUse?.choice === "object";
  const prompt = { ...chosen, choices, logprobs, stream: stream.stream, isCallNamed };
  return planGeneration(exchange, call, model, [prompt]);
}

/** Parts of a call that differ between messages and a prompt made from them. */
type ChatCall = Pick<TextCall, "prompt" | "messages" | "tools" | "sampling"> & Pick<PromptCall, "toolCalls">;

function callWithMessages(
  { templates }: OpenAiExchange,
  model: TextModel,
  template: ChatTemplate | undefined,
  { messages, toolUse, sampling: given, variables, addGenerationPrompt }: Chat,
): ChatCall {
  // The model renders the messages itself.
  const sampling: Sampling = {
    ...given,
    ...(variables && { chat_template_kwargs: variables }),
    ...(addGenerationPrompt ? {} : { add_generation_prompt: false }),
  };
  if (toolUse === undefined) return { messages, sampling };
  if (!model.inputs.has("tools")) throw takesNoTools(model);
  const { tools, choice, parallel } = toolUse;
  if (model.outputs.has("tool_calls")) {
    const chosen = typeof choice === "object" ? { type: "function", function: choice } : choice;
    return {
      messages,
      tools,
      sampling: { ...sampling, tool_choice: chosen, parallel_tool_calls: parallel },
    };
  }
  // The model does not report calls, so they are read from its text here.
  const forced = forcedCall(toolUse, sampling);
  if (forced !== undefined) return { messages, tools, ...forced };
  const newReader = () => templates.readerOf(model.name, template, tools);
  if (newReader() === undefined) throw writesUnknownCalls(model);
  return { messages, tools, sampling, toolCalls: () => limited(newReader(), toolUse) };
}

function callWithPrompt(
  { templates }: OpenAiExchange,
  model: TextModel,
  template: ChatTemplate | undefined,
  { messages, toolUse, sampling, variables, addGenerationPrompt }: Chat,
): ChatCall {
  if (template === undefined || model.promptInput === undefined) throw hasNoTemplate(model);
  const tools = toolUse?.tools;
  const prompt = template.render({
    messages: textMessages(messages, model.name) as Parameters<ChatTemplate["render"]>[0]["messages"],
    ...(tools && { tools }),
    ...(variables && { variables }),
    addGenerationPrompt,
  });
  if (toolUse === undefined || tools === undefined) return { prompt, sampling };
  const forced = forcedCall(toolUse, sampling);
  if (forced !== undefined) return { prompt, ...forced };
  if (templates.readerOf(model.name, template, tools) === undefined) throw writesUnknownCalls(model);
  // Calls may begin with special tokens, which models leave out of their text otherwise.
  const shown: Sampling = { skip_special_tokens: false, ...sampling };
  return {
    prompt,
    sampling: model.inputs.has("sampling_parameters") ? shown : sampling,
    toolCalls: () => limited(templates.readerOf(model.name, template, tools), toolUse),
  };
}

/** Forces a call by a format of the output; undefined if the model may answer with text. */
function forcedCall(
  toolUse: ToolUse,
  sampling: Sampling,
): Pick<ChatCall, "sampling" | "toolCalls"> | undefined {
  const format = forcedFormat(toolUse);
  if (format === undefined) return undefined;
  return {
    sampling: { ...sampling, response_format: format },
    toolCalls: () => forcedCallText(toolUse),
  };
}

function limited(reader: ToolCallText | undefined, { parallel }: ToolUse): ToolCallText | undefined {
  return reader === undefined || parallel ? reader : new FirstCallText(reader);
}

function hasNoTemplate({ name }: TextModel): OpenAiError {
  const text =
    `model '${name}' cannot take messages: expected an input 'messages', or a chat template. Put tokenizer_config.json ` +
    `with its chat_template into the directory of the model's version, set openai({ chatTemplates: { "${name}": directory } }), ` +
    "or send the prompt to /v1/completions";
  return new OpenAiError(400, text, { param: "messages", code: "chat_template_missing" });
}

function takesNoTools({ name }: TextModel): OpenAiError {
  const text = `model '${name}' cannot take tools: expected an input 'tools', or a chat template that has tools`;
  return new OpenAiError(400, text, { param: "tools", code: "unsupported_parameter" });
}

function writesUnknownCalls({ name }: TextModel): OpenAiError {
  const text =
    `model '${name}' cannot take tools: expected a chat template that shows how it writes calls of tools. Put ` +
    "tokenizer_config.json with one into the directory of the model's version, or set " +
    `openai({ toolCallFamilies: { "${name}": family } })`;
  return new OpenAiError(400, text, { param: "tools", code: "unsupported_parameter" });
}

/** Schema of a function without parameters. */
const NO_PARAMETERS = { type: "object", properties: {} };

/**
 * The response format that forces a model to call a tool: the arguments of a named tool, or an array of calls.
 *
 * @returns undefined if the model may answer with text
 */
function forcedFormat({ tools, choice, parallel }: ToolUse): object | undefined {
  if (choice === "auto") return undefined;
  if (choice !== "required") return jsonSchema("tool_arguments", parametersOf(tools[0]!));
  const calls = tools.map((tool) => ({
    type: "object",
    properties: { name: { const: tool.function.name }, arguments: parametersOf(tool) },
    required: ["name", "arguments"],
    additionalProperties: false,
  }));
  return jsonSchema("tool_calls", {
    type: "array",
    minItems: 1,
    ...(!parallel && { maxItems: 1 }),
    items: calls.length === 1 ? calls[0] : { anyOf: calls },
  });
}

/** Reads the text of a model that was forced to call a tool. */
function forcedCallText({ tools, choice }: ToolUse): ToolCallText | undefined {
  if (choice === "auto") return undefined;
  return typeof choice === "object"
    ? new NamedCallText(choice.name)
    : new CallsOnlyText(createToolCallReader("json", { tools }));
}

function jsonSchema(name: string, schema: object): object {
  return { type: "json_schema", json_schema: { name, schema, strict: true } };
}

function parametersOf(tool: Tool): object {
  return tool.function.parameters ?? NO_PARAMETERS;
}

/** All text is the arguments of one call. */
class NamedCallText implements ToolCallText {
  #begun = false;

  constructor(private readonly name: string) {}

  push(text: string): readonly ToolCallPiece[] {
    const pieces: ToolCallPiece[] = [];
    if (!this.#begun) {
      const named = { name: this.name, arguments: "" };
      pieces.push({ index: 0, id: newId("call_"), type: "function", function: named });
      this.#begun = true;
    }
    pieces.push({ index: 0, function: { arguments: text } });
    return pieces;
  }

  end(): readonly ToolCallPiece[] {
    return [];
  }
}

/** Leaves out the text after the first call, such as the beginning of a call that the model could not finish. */
class CallsOnlyText implements ToolCallText {
  #begun = false;

  constructor(private readonly reader: ToolCallText) {}

  push(text: string): readonly ToolCallPiece[] {
    return this.#calls(this.reader.push(text));
  }

  end(): readonly ToolCallPiece[] {
    return this.#calls(this.reader.end());
  }

  #calls(pieces: readonly ToolCallPiece[]): readonly ToolCallPiece[] {
    return pieces.filter((piece) => {
      if ("content" in piece) return !this.#begun;
      this.#begun = true;
      return true;
    });
  }
}

/** Leaves out all calls but the first, for `parallel_tool_calls: false`. */
class FirstCallText implements ToolCallText {
  constructor(private readonly reader: ToolCallText) {}

  push(text: string): readonly ToolCallPiece[] {
    return this.reader.push(text).filter(isFirst);
  }

  end(): readonly ToolCallPiece[] {
    return this.reader.end().filter(isFirst);
  }
}

function isFirst(piece: ToolCallPiece): boolean {
  return "content" in piece || piece.index === 0;
}
