import type { AnswerReader } from "../chat/answer-reader.js";
import type { ChatTemplate, ChatTool } from "../chat/chat-template.js";
import type { AnswerPiece } from "../chat/tool-call-pieces.js";
import { createToolCallReader } from "../chat/tool-call-reader.js";
import { answer, ChatWriter } from "./answers.js";
import {
  type Chat,
  type RequestLimits,
  readChatRequest,
  type ToolUse,
  textMessages,
} from "./chat-request.js";
import { Generation, type PromptCall } from "./generation.js";
import { invalidField, type OpenAiError } from "./openai-error.js";
import { inferenceRoute, newId, type OpenAiExchange } from "./openai-exchange.js";
import type { Sampling } from "./request-fields.js";
import { type TextModel, textModelOf } from "./text-model.js";

/** Route of chats: `POST /v1/chat/completions`. */
export function chatRoute(limits: RequestLimits) {
  return inferenceRoute(/^\/v1\/chat\/completions$/, async (exchange) => {
    const chat = await exchange.readBody((fields) => readChatRequest(fields, limits));
    const generation = await planChat(exchange, chat);
    const { model, choices, topLogprobs, stream } = chat;
    const options = { model, topLogprobs, includeUsage: stream.includeUsage };
    return answer(exchange, generation, stream.stream, new ChatWriter(options, choices));
  });
}

/**
 * Plans the requests for a chat. The messages go to the model as they are if it has an input for them. Otherwise a chat
 * template makes a prompt of them.
 *
 * @throws OpenAiError 400 for a model that cannot take the chat; TritonError INVALID_ARG if the template rejects it
 */
export async function planChat(exchange: OpenAiExchange, chat: Chat): Promise<Generation> {
  const { templates } = exchange;
  const lookUp = await exchange.lookUpModel(chat.model);
  const template = await templates.find(lookUp.model);
  const model = textModelOf(lookUp.current().config);
  const { toolUse, choices, topLogprobs, stream } = chat;
  const takesTools = toolUse === undefined || model.inputs.has("tools");
  const takesMessages = model.inputs.has("messages") && !templates.isChosen(model.name);
  const answers: AnswerReading = {
    isSeparate: templates.separatesReasoning(model.name, template),
    newReader: (prompt, tools) => {
      const reader = templates.readerOf(model.name, template, tools, prompt);
      const keeps = (piece: AnswerPiece) => chat.includeReasoning || !("reasoning" in piece);
      return reader && filtered(reader, keeps);
    },
    readsCalls: templates.familyOf(model.name, template) !== undefined,
  };
  const call =
    takesMessages && (takesTools || template === undefined)
      ? callWithMessages(model, template, chat, answers)
      : callWithPrompt(model, template, chat, answers);
  const logprobs = topLogprobs !== undefined;
  const isCallNamed = typeof toolUse?.choice === "object";
  const prompt = { ...call, choices, logprobs, stream: stream.stream, isCallNamed };
  return new Generation(exchange, lookUp, model, [prompt]);
}

/** Parts of a call that differ between messages and a prompt made from them. */
type ChatCall = Pick<PromptCall, "prompt" | "messages" | "tools" | "sampling" | "newReader">;

/** Parts that the server finds in the texts of a model. */
interface AnswerReading {
  /** True if the reasoning of the model is kept apart from its content. */
  readonly isSeparate: boolean;
  /** True if the form of the model's calls is known. */
  readonly readsCalls: boolean;
  newReader(prompt: string, tools: readonly ChatTool[]): AnswerReader | undefined;
}

function callWithMessages(
  model: TextModel,
  template: ChatTemplate | undefined,
  chat: Chat,
  answers: AnswerReading,
): ChatCall {
  const { messages, toolUse, sampling: given, variables, addGenerationPrompt } = chat;
  // The model renders the messages itself.
  const sampling: Sampling = {
    ...given,
    ...(variables && { chat_template_kwargs: variables }),
    ...(addGenerationPrompt ? {} : { add_generation_prompt: false }),
  };
  // The prompt tells whether the answer begins within the reasoning.
  const prompt = answers.isSeparate && template !== undefined ? render(template, chat, model) : "";
  const newReader = () => answers.newReader(textStart(prompt, sampling), []);
  if (toolUse === undefined) return { messages, sampling, newReader };
  if (!model.inputs.has("tools")) throw takesNoTools(model);
  const { tools, choice, parallel } = toolUse;
  // A model that does not report calls writes them in its text.
  if (!model.outputs.has("tool_calls")) {
    return { messages, tools, ...callsInText(model, toolUse, sampling, sampling, prompt, answers) };
  }
  const chosen = typeof choice === "object" ? { type: "function", function: choice } : choice;
  const reported = { ...sampling, tool_choice: chosen, parallel_tool_calls: parallel };
  return { messages, tools, sampling: reported, newReader };
}

function callWithPrompt(
  model: TextModel,
  template: ChatTemplate | undefined,
  chat: Chat,
  answers: AnswerReading,
): ChatCall {
  const { toolUse, sampling } = chat;
  if (template === undefined || model.promptInput === undefined) throw hasNoTemplate(model);
  const prompt = render(template, chat, model);
  // Calls and reasoning may begin with special tokens, which models leave out of their text otherwise.
  const shows = toolUse !== undefined || (answers.isSeparate && template.hasSpecialReasoning);
  const shown =
    shows && model.inputs.has("sampling_parameters") ? { skip_special_tokens: false, ...sampling } : sampling;
  if (toolUse !== undefined) {
    return { prompt, ...callsInText(model, toolUse, sampling, shown, prompt, answers) };
  }
  return { prompt, sampling: shown, newReader: () => answers.newReader(textStart(prompt, sampling), []) };
}

function render(
  template: ChatTemplate,
  { messages, toolUse, variables, addGenerationPrompt }: Chat,
  model: TextModel,
): string {
  const tools = toolUse?.tools;
  return template.render({
    messages: textMessages(messages, model.name),
    ...(tools && { tools }),
    ...(variables && { variables }),
    addGenerationPrompt,
  });
}

/** The prompt, unless the text has a structure from its first token on, and so no reasoning. */
function textStart(prompt: string, sampling: Sampling): string {
  const isStructured = Object.keys(sampling).some((name) => /^(response_format|guided_)/.test(name));
  return isStructured ? "" : prompt;
}

/**
 * Reads calls in the text of the model, and forces one by a format of the text if the model may not answer otherwise.
 *
 * @param shown sampling for calls that are not forced
 */
function callsInText(
  model: TextModel,
  toolUse: ToolUse,
  sampling: Sampling,
  shown: Sampling,
  prompt: string,
  answers: AnswerReading,
): Pick<PromptCall, "sampling" | "newReader"> {
  const format = forcedFormat(toolUse);
  if (format !== undefined) {
    return { sampling: { ...sampling, response_format: format }, newReader: () => forcedCallText(toolUse) };
  }
  if (!answers.readsCalls) throw writesUnknownCalls(model);
  const newReader = () => answers.newReader(textStart(prompt, sampling), toolUse.tools)!;
  const isFirst = (piece: AnswerPiece) => !("index" in piece) || piece.index === 0;
  return { sampling: shown, newReader: toolUse.parallel ? newReader : () => filtered(newReader(), isFirst) };
}

function hasNoTemplate({ name }: TextModel): OpenAiError {
  const text =
    `model '${name}' cannot take messages: expected an input 'messages', or a chat template. Put tokenizer_config.json ` +
    `with its chat_template into the directory of the model's version, set openai({ chatTemplates: { "${name}": directory } }), ` +
    "or send the prompt to /v1/completions";
  return invalidField("messages", text, "chat_template_missing");
}

function takesNoTools({ name }: TextModel): OpenAiError {
  const text = `model '${name}' cannot take tools: expected an input 'tools', or a chat template that has tools`;
  return invalidField("tools", text, "unsupported_parameter");
}

function writesUnknownCalls({ name }: TextModel): OpenAiError {
  const text =
    `model '${name}' cannot take tools: expected a chat template that shows how it writes calls of tools. Put ` +
    "tokenizer_config.json with one into the directory of the model's version, or set " +
    `openai({ toolCallFamilies: { "${name}": family } })`;
  return invalidField("tools", text, "unsupported_parameter");
}

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
function forcedCallText({ tools, choice }: ToolUse): AnswerReader {
  if (typeof choice === "object") return namedCallText(choice.name);
  let begun = false;
  // The text after the first call is left out, such as the beginning of a call that the model could not finish.
  return filtered(createToolCallReader("json", { tools }), (piece) => {
    if ("content" in piece) return !begun;
    begun = true;
    return true;
  });
}

/** All text is the arguments of one call. */
function namedCallText(name: string): AnswerReader {
  let begun = false;
  return {
    push(text) {
      const call = {
        index: 0,
        id: newId("call_"),
        type: "function" as const,
        function: { name, arguments: "" },
      };
      const pieces = [...(begun ? [] : [call]), { index: 0, function: { arguments: text } }];
      begun = true;
      return pieces;
    },
    end: () => [],
  };
}

function filtered(reader: AnswerReader, keeps: (piece: AnswerPiece) => boolean): AnswerReader {
  return { push: (text) => reader.push(text).filter(keeps), end: () => reader.end().filter(keeps) };
}

function jsonSchema(name: string, schema: object): object {
  return { type: "json_schema", json_schema: { name, schema, strict: true } };
}

function parametersOf(tool: ChatTool): object {
  return tool.function.parameters ?? NO_PARAMETERS;
}
