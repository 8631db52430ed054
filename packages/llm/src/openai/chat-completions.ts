import type { AnswerReader } from "../chat/answer-reader.js";
import type { ChatTemplate, ChatTool } from "../chat/chat-template.js";
import { filtered, forcedCallText, forcedFormat, type ToolUse } from "../chat/forced-calls.js";
import type { AnswerPiece } from "../chat/tool-call-pieces.js";
import { turns, type Waiting } from "../turns.js";
import { answer, ChatWriter } from "./answers.js";
import { type Chat, type RequestLimits, readChatRequest, templateMessages } from "./chat-request.js";
import { Generation, type PromptCall } from "./generation.js";
import { imageTexts } from "./image-urls.js";
import { invalidField, type OpenAiError } from "./openai-error.js";
import { inferenceRoute, type OpenAiExchange } from "./openai-exchange.js";
import { isStructured, requestJsonInParts, type Sampling } from "./request-fields.js";
import { cachedAnswer, cacheHeaders, RecordingWriter, type SemanticCache } from "./semantic-cache.js";
import { type TextModel, textModelOf } from "./text-model.js";

/** Route of chats: `POST /v1/chat/completions`. */
export function chatRoute(limits: RequestLimits, cache: SemanticCache | undefined) {
  return inferenceRoute(/^\/v1\/chat\/completions$/, async (exchange) => {
    const chat = await exchange.readBody((fields) => readChatRequest(fields, limits));
    const { model, choices, topLogprobs, stream } = chat;
    const options = { model, topLogprobs, includeUsage: stream.includeUsage };
    const writer = new ChatWriter(options, choices);
    const cached = await cache?.find(exchange, chat, exchange.findModel(model).config);
    if (cached === undefined) {
      return answer(exchange, await planChat(exchange, chat), stream.stream, writer);
    }
    const { store, answer: kept } = cached;
    const response =
      kept !== undefined
        ? cachedAnswer(kept, stream.stream, writer)
        : await answer(
            exchange,
            await planChat(exchange, chat),
            stream.stream,
            store === undefined ? writer : new RecordingWriter(writer, store),
          );
    return { ...response, headers: { ...response.headers, ...cacheHeaders(cached) } };
  });
}

/**
 * Plans the requests for a chat. The messages go to the model as they are if it has an input for them. Otherwise a chat
 * template makes a prompt of them.
 *
 * @throws OpenAiError 400 for a model that cannot take the chat; TritonError INVALID_ARG if the template rejects it
 */
export async function planChat(exchange: OpenAiExchange, given: Chat): Promise<Generation> {
  const { templates } = exchange;
  const lookUp = await exchange.lookUpModel(given.model);
  const template = await templates.find(lookUp.model);
  const model = textModelOf(lookUp.current().config);
  const chat = model.takesImages ? { ...given, messages: await exchange.withImages(given.messages) } : given;
  const { toolUse, choices, topLogprobs, stream } = chat;
  const takesTools = toolUse === undefined || model.inputs.has("tools");
  const takesMessages = model.inputs.has("messages") && !templates.isChosen(model.name);
  const answers: AnswerReading = {
    isSeparate: templates.separatesReasoning(model.name, template),
    asksForReasoning: templates.reasoningContent,
    newReader: (prompt, tools) => {
      const reader = templates.readerOf(model.name, template, tools, prompt);
      const keeps = (piece: AnswerPiece) => chat.includeReasoning || !("reasoning" in piece);
      return reader && filtered(reader, keeps);
    },
    readsCalls: templates.familyOf(model.name, template) !== undefined,
  };
  const { request } = exchange;
  const call =
    takesMessages && (takesTools || template === undefined)
      ? await callWithMessages(model, template, chat, answers, request)
      : await callWithPrompt(model, template, chat, answers, request);
  const logprobs = topLogprobs !== undefined;
  const isCallNamed = typeof toolUse?.choice === "object";
  const isCallSingle = toolUse?.parallel === false;
  const hidesReasoning = !chat.includeReasoning;
  const calls = { isCallNamed, isCallSingle };
  const prompt = { ...call, choices, logprobs, stream: stream.stream, ...calls, hidesReasoning };
  return new Generation(exchange, lookUp, model, [prompt]);
}

/** Parts of a call that differ between messages and a prompt made from them. */
type ChatCall = Pick<
  PromptCall,
  "prompt" | "messages" | "images" | "tools" | "sampling" | "newReader" | "reasoning"
>;

/** The client of a request. */
type Client = Pick<OpenAiExchange["request"], "gone">;

/** Parts that the server finds in the texts of a model. */
interface AnswerReading {
  /** True if the reasoning of the model is kept apart from its content. */
  readonly isSeparate: boolean;
  /** True if a model that finds its reasoning itself is asked to. */
  readonly asksForReasoning: boolean;
  /** True if the form of the model's calls is known. */
  readonly readsCalls: boolean;
  newReader(prompt: string, tools: readonly ChatTool[]): AnswerReader | undefined;
}

async function callWithMessages(
  model: TextModel,
  template: ChatTemplate | undefined,
  chat: Chat,
  answers: AnswerReading,
  request: Client,
): Promise<ChatCall> {
  const { toolUse, forbidsCalls, sampling: given, variables, addGenerationPrompt } = chat;
  const messages = await turns.run(requestJsonInParts(chat.messages, "messages"), waitingOf(request));
  // The model renders the messages itself.
  const sampling: Sampling = {
    ...given,
    ...(variables && { chat_template_kwargs: variables }),
    ...(addGenerationPrompt ? {} : { add_generation_prompt: false }),
    ...(forbidsCalls && { tool_choice: "none" }),
  };
  // A model that knows its template finds reasoning and calls itself.
  if (model.outputs.has("reasoning_content") && template === undefined) {
    const reasoning = answers.asksForReasoning;
    if (toolUse === undefined) return { messages, sampling, reasoning };
    return { messages, tools: toolUse.tools, sampling: withChoice(sampling, toolUse), reasoning };
  }
  // The prompt tells whether the answer begins within the reasoning.
  const prompt =
    answers.isSeparate && template !== undefined ? await render(template, chat, model, request) : "";
  const newReader = () => answers.newReader(textStart(prompt, sampling), []);
  if (toolUse === undefined) return { messages, sampling, newReader };
  if (!model.inputs.has("tools")) throw takesNoTools(model);
  const { tools } = toolUse;
  // A model that does not report calls writes them in its text.
  if (!model.outputs.has("tool_calls")) {
    return { messages, tools, ...callsInText(model, toolUse, sampling, sampling, prompt, answers) };
  }
  return { messages, tools, sampling: withChoice(sampling, toolUse), newReader };
}

/** Adds the fields by which a model that reports calls knows which it may make. */
function withChoice(sampling: Sampling, { choice, parallel }: ToolUse): Sampling {
  const chosen = typeof choice === "object" ? { type: "function", function: choice } : choice;
  return { ...sampling, tool_choice: chosen, parallel_tool_calls: parallel };
}

async function callWithPrompt(
  model: TextModel,
  template: ChatTemplate | undefined,
  chat: Chat,
  answers: AnswerReading,
  request: Client,
): Promise<ChatCall> {
  const { toolUse, sampling } = chat;
  if (template === undefined || model.promptInput === undefined) throw hasNoTemplate(model);
  const prompt = await render(template, chat, model, request);
  // Calls and reasoning may begin with special tokens, which models leave out of their text otherwise.
  const shows = toolUse !== undefined || (answers.isSeparate && template.hasSpecialReasoning);
  const shown =
    shows && model.inputs.has("sampling_parameters") ? { skip_special_tokens: false, ...sampling } : sampling;
  const images = model.takesImages ? imageTexts(chat.messages) : [];
  if (toolUse !== undefined) {
    return { prompt, images, ...callsInText(model, toolUse, sampling, shown, prompt, answers) };
  }
  return {
    prompt,
    images,
    sampling: shown,
    newReader: () => answers.newReader(textStart(prompt, sampling), []),
  };
}

function render(
  template: ChatTemplate,
  { messages, toolUse, variables, addGenerationPrompt }: Chat,
  model: TextModel,
  request: Client,
): string | Promise<string> {
  const tools = toolUse?.tools;
  const input = {
    messages: templateMessages(messages, model.name, model.takesImages),
    ...(tools && { tools }),
    ...(variables && { variables }),
    ...(model.takesImages && { imageText: IMAGE_TEXT }),
    addGenerationPrompt,
  };
  return template.renderInTurns(input, waitingOf(request));
}

function waitingOf(request: Client): Waiting {
  return {
    get aborted() {
      return request.gone;
    },
  };
}

/** Text for an image in a prompt whose template does not write it. */
const IMAGE_TEXT = "<image>";

/** The prompt, unless the text has a structure from its first token on, and so no reasoning. */
function textStart(prompt: string, sampling: Sampling): string {
  return isStructured(sampling) ? "" : prompt;
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
  const forced = forcedFormat(toolUse);
  if (forced !== undefined) {
    const name = toolUse.choice === "required" ? "tool_calls" : "tool_arguments";
    const format = { type: forced.type, json_schema: { name, schema: forced.schema, strict: true } };
    return { sampling: { ...sampling, response_format: format }, newReader: () => forcedCallText(toolUse) };
  }
  if (!answers.readsCalls) throw writesUnknownCalls(model);
  return { sampling: shown, newReader: () => answers.newReader(textStart(prompt, sampling), toolUse.tools) };
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
