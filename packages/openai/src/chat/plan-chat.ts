import type { PinnedModel } from "@tritonjs/core/frontend";
import type { ChatTemplate } from "@tritonjs/text-generation";
import { OpenAiError } from "../errors/openai-error.js";
import type { Sampling } from "../fields/sampling-fields.js";
import type { OpenAiExchange } from "../generation/exchange.js";
import type { GenerationPlan } from "../generation/generation.js";
import { type PromptCall, planGeneration } from "../generation/plan.js";
import type { ToolCallText } from "../generation/text-choice.js";
import type { TextCall } from "../model/text-inputs.js";
import { type TextModel, textModelOf } from "../model/text-model.js";
import type { Chat } from "./chat-request.js";
import { FirstCallText, forcedCallText, forcedFormat } from "./forced-calls.js";
import { textMessages } from "./messages.js";
import type { ToolUse } from "./tools.js";

/**
 * Plans the requests for a chat. The messages go to the model as they are if it has an input for them. Otherwise a chat
 * template makes a prompt of them.
 *
 * @throws OpenAiError 400 for a model that cannot take the chat; TritonError INVALID_ARG if the template rejects it
 */
export function planChat(
  exchange: OpenAiExchange,
  pinned: PinnedModel,
  template: ChatTemplate | undefined,
  chat: Chat,
): GenerationPlan {
  const model = textModelOf(pinned.config);
  const takesTools = chat.toolUse === undefined || model.inputs.has("tools");
  const takesMessages = model.inputs.has("messages") && !exchange.templates.isChosen(model.name);
  const call =
    takesMessages && (takesTools || template === undefined)
      ? callWithMessages(exchange, model, template, chat)
      : callWithPrompt(exchange, model, template, chat);
  const { choices, stream, topLogprobs } = chat;
  const logprobs = topLogprobs !== undefined;
  const isCallNamed = typeof chat.toolUse?.choice === "object";
  const prompt = { ...call, choices, logprobs, stream: stream.stream, isCallNamed };
  return planGeneration(exchange, pinned, model, [prompt]);
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
