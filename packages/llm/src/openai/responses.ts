import type { ChatContentPart, ChatMessage } from "../chat/chat-template.js";
import type { ToolCallDelta } from "../chat/tool-call-pieces.js";
import type { TextFinishReason } from "../text-callback.js";
import { type AnswerWriter, answer, rankedLogprobs, type WholeAnswer, type WholeChoice } from "./answers.js";
import { planChat } from "./chat-completions.js";
import { type Chat, MOST_TOP_LOGPROBS, readMessages, readToolUse } from "./chat-request.js";
import type { ChoiceDelta, RankedToken, ToolCall, Usage } from "./generation.js";
import { invalidField, type OpenAiError, shown } from "./openai-error.js";
import { inferenceRoute, newId, unixSeconds } from "./openai-exchange.js";
import {
  Fields,
  MOST_TOKENS,
  objectFields,
  readJsonObject,
  readSampling,
  refuseFields,
} from "./request-fields.js";

/**
 * Route of the Responses API, with text and calls of functions: `POST /v1/responses`.
 *
 * @param defaultMaxTokens `max_output_tokens` of a request without one
 */
export function responsesRoute(defaultMaxTokens: number | undefined) {
  return inferenceRoute(/^\/v1\/responses$/, async (exchange) => {
    const { chat, echoed } = await exchange.readBody((fields) =>
      readResponseRequest(fields, defaultMaxTokens),
    );
    const generation = await planChat(exchange, chat);
    return answer(exchange, generation, chat.stream.stream, new ResponseWriter(echoed, chat.topLogprobs));
  });
}

interface ResponseRequest {
  readonly chat: Chat;
  readonly echoed: Readonly<Record<string, unknown>>;
}

/** Fields for features that the server lacks: stored responses, and runs without a client. */
const UNSUPPORTED_FIELDS: Readonly<Record<string, string>> = {
  previous_response_id: "responses are not stored: send the earlier messages in 'input'",
  conversation: "conversations are not stored: send the earlier messages in 'input'",
  prompt: "prompts are not stored: send 'input' and 'instructions'",
};

/**
 * Reads the body of `POST /v1/responses`: text and calls of functions, without stored responses and OpenAI's own tools.
 *
 * @throws OpenAiError 400 for the first field at fault
 */
function readResponseRequest(fields: Fields, defaultMaxTokens: number | undefined): ResponseRequest {
  const model = fields.requiredString("model");
  refuseUnsupported(fields);
  const instructions = fields.string("instructions");
  const items = readInputItems(fields);
  const messages = instructions === undefined ? items : [{ role: "system", content: instructions }, ...items];
  const stream = fields.boolean("stream") ?? false;
  const maxTokens = fields.integer("max_output_tokens", 1, MOST_TOKENS) ?? defaultMaxTokens;
  const topLogprobs = readTopLogprobs(fields);
  const sampling = readSampling(fields);
  const format = readTextFormat(fields);
  if (format !== undefined) sampling.response_format = format;
  if (maxTokens !== undefined) sampling.max_tokens = maxTokens;
  if (topLogprobs !== undefined) sampling.logprobs = topLogprobs;
  const tools = readResponseTools(fields);
  const toolChoice = fields.any("tool_choice");
  const parallel = fields.boolean("parallel_tool_calls");
  const metadata = fields.object("metadata") === undefined ? {} : fields.any("metadata");
  return {
    chat: {
      model,
      messages,
      ...readToolUse(new Fields({ tools, tool_choice: toolChoice, parallel_tool_calls: parallel })),
      sampling,
      choices: 1,
      topLogprobs,
      stream: { stream, includeUsage: true },
      variables: undefined,
      addGenerationPrompt: true,
      includeReasoning: true,
    },
    echoed: {
      model,
      instructions: instructions ?? null,
      max_output_tokens: maxTokens ?? null,
      metadata,
      parallel_tool_calls: parallel ?? true,
      temperature: sampling.temperature ?? 1,
      top_p: sampling.top_p ?? 1,
      text: fields.any("text") ?? { format: { type: "text" } },
      tool_choice: toolChoice ?? "auto",
      tools: fields.any("tools") ?? [],
    },
  };
}

function refuseUnsupported(fields: Fields): void {
  refuseFields(fields, UNSUPPORTED_FIELDS);
  if (fields.boolean("background") === true) {
    const text = "'background': expected false, because responses are not stored";
    throw invalidField("background", text, "unsupported_parameter");
  }
  for (const name of ["truncation", "include", "reasoning", "max_tool_calls", "stream_options"])
    fields.any(name);
}

function readTopLogprobs(fields: Fields): number | undefined {
  const included = fields.array("include") ?? [];
  const top = fields.integer("top_logprobs", 0, MOST_TOP_LOGPROBS);
  return top ?? (included.includes("message.output_text.logprobs") ? 0 : undefined);
}

/** The format of `text.format` as chats have it. */
function readTextFormat(fields: Fields): unknown {
  const text = fields.object("text");
  const format = text?.object("format");
  const type = format?.choice("type", ["text", "json_object", "json_schema"]);
  if (format === undefined || type === undefined || type === "text") return undefined;
  if (type === "json_object") return readJsonObject(format);
  const name = format.requiredString("name");
  if (format.object("schema") === undefined) {
    const text = "'text.format.schema': expected a JSON schema, got none";
    throw invalidField("text.format.schema", text, "missing_required_parameter");
  }
  return { type, json_schema: { name, schema: format.any("schema"), strict: format.any("strict") ?? null } };
}

function readResponseTools(fields: Fields): unknown[] {
  return (fields.array("tools") ?? []).map((tool, index) => {
    const given = objectFields(tool, `tools[${index}]`);
    const type = given.requiredString("type");
    if (type !== "function") {
      const text = `'tools[${index}].type': expected function, got ${type}: tools of OpenAI itself do not run here`;
      throw invalidField(`tools[${index}].type`, text, "unsupported_value");
    }
    const { name, description, parameters, strict } = tool as Record<string, unknown>;
    return { type, function: { name, description, parameters, strict } };
  });
}

/** Kinds of text in the content of an item. */
const TEXT_PARTS = new Set(["input_text", "output_text", "text"]);

/**
 * Reads `input` of the Responses API as the messages of a chat.
 *
 * @throws OpenAiError 400 that names the item at fault
 */
function readInputItems(fields: Fields): readonly ChatMessage[] {
  const input = fields.any("input");
  if (typeof input === "string") return [{ role: "user", content: input }];
  if (!Array.isArray(input) || input.length === 0) {
    const text = `you must provide 'input': expected a string or an array of items, got ${shown(input)}`;
    throw invalidField("input", text, input === undefined ? "missing_required_parameter" : "invalid_type");
  }
  const messages: ChatMessage[] = [];
  for (const [index, item] of input.entries()) addItem(messages, objectFields(item, `input[${index}]`));
  return readMessages(new Fields({ messages }));
}

function addItem(messages: ChatMessage[], item: Fields): void {
  const type = item.string("type") ?? "message";
  switch (type) {
    case "message":
      messages.push({ role: item.requiredString("role"), content: messageContent(item) });
      return;
    case "function_call":
      addCall(messages, item);
      return;
    case "function_call_output":
      messages.push({
        role: "tool",
        tool_call_id: item.requiredString("call_id"),
        content: outputText(item),
      });
      return;
    case "reasoning":
      // The reasoning of a model is not part of the chat.
      return;
    default: {
      const path = item.path("type");
      const text = `'${path}': expected message, function_call or function_call_output, got ${shown(type)}`;
      throw invalidField(path, text, "unsupported_value");
    }
  }
}

/** Calls in a row belong to one message of the assistant. */
function addCall(messages: ChatMessage[], item: Fields): void {
  const call = {
    id: item.requiredString("call_id"),
    type: "function" as const,
    function: { name: item.requiredString("name"), arguments: item.string("arguments") ?? "{}" },
  };
  const last = messages.at(-1);
  if (last?.role === "assistant") {
    messages[messages.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), call] };
  } else messages.push({ role: "assistant", content: null, tool_calls: [call] });
}

/** The text of a message, or its parts if there are images among them. */
function messageContent(item: Fields): string | readonly ChatContentPart[] {
  const content = item.any("content");
  if (typeof content === "string") return content;
  const path = item.path("content");
  if (Array.isArray(content)) {
    const isImage = (part: unknown) => (Object(part) as { type?: unknown }).type === "input_image";
    if (!content.some(isImage)) return joinedParts(content, path);
    return content.map((part, index): ChatContentPart => {
      const fields = objectFields(part, `${path}[${index}]`);
      if (!isImage(part)) return { type: "text", text: partText(fields) };
      return { type: "image_url", image_url: { url: fields.requiredString("image_url") } };
    });
  }
  throw invalidField(path, `'${path}': expected a string or an array, got ${shown(content)}`, "invalid_type");
}

function outputText(item: Fields): string {
  const output = item.any("output");
  return Array.isArray(output) ? joinedParts(output, item.path("output")) : item.requiredString("output");
}

function joinedParts(parts: readonly unknown[], path: string): string {
  return parts.map((part, index) => partText(objectFields(part, `${path}[${index}]`))).join("\n");
}

function partText(part: Fields): string {
  const type = part.requiredString("type");
  if (TEXT_PARTS.has(type)) return part.string("text") ?? "";
  if (type === "refusal") return part.string("refusal") ?? "";
  const path = part.path("type");
  throw invalidField(path, `'${path}': expected text, got ${type}`, "unsupported_content");
}

/** Writes a response. In a stream, items open, grow and close one after the other. */
class ResponseWriter implements AnswerWriter {
  readonly #id = newId("resp_");
  readonly #createdAt = unixSeconds();
  readonly #output: object[] = [];
  #item: OpenText | OpenCall | undefined;
  #sequence = 0;
  #reason: TextFinishReason = "stop";

  /** @param echoed members of the request that the response repeats */
  constructor(
    readonly echoed: Readonly<Record<string, unknown>>,
    private readonly topLogprobs: number | undefined,
  ) {}

  whole({ choices, usage }: WholeAnswer): object {
    const [choice] = choices as readonly [WholeChoice];
    const { text, reasoning, toolCalls, logprobs, finishReason } = choice;
    const [status, incomplete] = endState(finishReason);
    const output: object[] = [];
    if (reasoning !== "") output.push(reasoningItem(newId("rs_"), "completed", [reasoningPart(reasoning)]));
    if (text !== "" || toolCalls.length === 0) {
      output.push(messageItem(newId("msg_"), status, [textPart(text, this.#logprobs(logprobs))]));
    }
    for (const call of toolCalls) output.push(callItem(newId("fc_"), call, "completed"));
    return this.#response(status, output, incomplete, usage);
  }

  begin(): string {
    const response = this.#response("in_progress", []);
    return this.#event("response.created", { response }) + this.#event("response.in_progress", { response });
  }

  delta(_choice: number, { text, reasoning, toolCalls, logprobs }: ChoiceDelta): string {
    let events = "";
    if (reasoning !== "") {
      const { item, opening } = this.#open("reasoning");
      item.text += reasoning;
      const place = { item_id: item.id, output_index: this.#output.length, content_index: 0 };
      events += opening + this.#event("response.reasoning_text.delta", { ...place, delta: reasoning });
    }
    // Log probabilities belong to the text, and those of reasoning or calls are left out.
    if (text !== "" || (logprobs.length > 0 && reasoning === "" && toolCalls.length === 0)) {
      const tokens = this.#logprobs(logprobs);
      const { item, opening } = this.#open("message");
      item.text += text;
      item.logprobs.push(...tokens);
      const place = { item_id: item.id, output_index: this.#output.length, content_index: 0 };
      events +=
        opening + this.#event("response.output_text.delta", { ...place, delta: text, logprobs: tokens });
    }
    for (const call of toolCalls) events += this.#callDelta(call);
    return events;
  }

  choiceEnd(_choice: number, reason: TextFinishReason): string {
    this.#reason = reason;
    if (this.#item !== undefined) return this.#closeItem();
    // An empty text is an item, too.
    return this.#output.length > 0 ? "" : this.#open("message").opening + this.#closeItem();
  }

  end(usage: Usage | undefined): string {
    const [status, incomplete] = endState(this.#reason);
    const response = this.#response(status, this.#output, incomplete, usage);
    return this.#event(`response.${status}`, { response });
  }

  error({ body: { error } }: OpenAiError): string {
    const { code, message, param } = error;
    return this.#event("error", { code, message, param, error });
  }

  #callDelta({ index, id, function: part }: ToolCallDelta): string {
    let events = "";
    let item = this.#item;
    if (item?.kind !== "call" || item.index !== index) {
      events += this.#closeItem();
      item = {
        kind: "call",
        id: newId("fc_"),
        index,
        callId: id ?? newId("call_"),
        name: part?.name ?? "",
        text: "",
      };
      this.#item = item;
      const added = callItem(item.id, toolCallOf(item), "in_progress");
      events += this.#event("response.output_item.added", { output_index: this.#output.length, item: added });
    }
    const text = part?.arguments ?? "";
    if (text === "") return events;
    item.text += text;
    const place = { item_id: item.id, output_index: this.#output.length };
    return events + this.#event("response.function_call_arguments.delta", { ...place, delta: text });
  }

  /** The item of a kind that is open, and the events that opened it if it was not. */
  #open(kind: OpenText["kind"]): { item: OpenText; opening: string } {
    if (this.#item?.kind === kind) return { item: this.#item, opening: "" };
    const closing = this.#closeItem();
    const isMessage = kind === "message";
    const item: OpenText = { kind, id: newId(isMessage ? "msg_" : "rs_"), text: "", logprobs: [] };
    this.#item = item;
    const place = { output_index: this.#output.length };
    const added = (isMessage ? messageItem : reasoningItem)(item.id, "in_progress", []);
    const empty = isMessage ? textPart("", []) : reasoningPart("");
    const part = { item_id: item.id, ...place, content_index: 0, part: empty };
    const opening =
      this.#event("response.output_item.added", { ...place, item: added }) +
      this.#event("response.content_part.added", part);
    return { item, opening: closing + opening };
  }

  #closeItem(): string {
    const item = this.#item;
    if (item === undefined) return "";
    this.#item = undefined;
    const place = { item_id: item.id, output_index: this.#output.length };
    let events = "";
    let closed: object;
    if (item.kind === "call") {
      closed = callItem(item.id, toolCallOf(item), "completed");
      const done = { ...place, name: item.name, arguments: item.text };
      events += this.#event("response.function_call_arguments.done", done);
    } else if (item.kind === "reasoning") {
      const { text } = item;
      const part = reasoningPart(text);
      closed = reasoningItem(item.id, "completed", [part]);
      events += this.#event("response.reasoning_text.done", { ...place, content_index: 0, text });
      events += this.#event("response.content_part.done", { ...place, content_index: 0, part });
    } else {
      const { text, logprobs } = item;
      const part = textPart(text, logprobs);
      closed = messageItem(item.id, endState(this.#reason)[0], [part]);
      events += this.#event("response.output_text.done", { ...place, content_index: 0, text, logprobs });
      events += this.#event("response.content_part.done", { ...place, content_index: 0, part });
    }
    events += this.#event("response.output_item.done", { output_index: place.output_index, item: closed });
    this.#output.push(closed);
    return events;
  }

  #response(status: string, output: readonly object[], incomplete?: string, usage?: Usage): object {
    return {
      id: this.#id,
      object: "response",
      created_at: this.#createdAt,
      status,
      error: null,
      incomplete_details: incomplete === undefined ? null : { reason: incomplete },
      ...this.echoed,
      output,
      previous_response_id: null,
      reasoning: { effort: null, summary: null },
      service_tier: "default",
      store: false,
      truncation: "disabled",
      usage: usage === undefined ? null : responseUsage(usage),
      user: null,
    };
  }

  #logprobs(tokens: readonly RankedToken[]): object[] {
    return this.topLogprobs === undefined ? [] : rankedLogprobs(tokens, this.topLogprobs);
  }

  #event(type: string, members: object): string {
    const data = JSON.stringify({ type, sequence_number: this.#sequence++, ...members });
    return `event: ${type}\ndata: ${data}\n\n`;
  }
}

/** A message, or the reasoning before it. */
interface OpenText {
  readonly kind: "message" | "reasoning";
  readonly id: string;
  text: string;
  readonly logprobs: object[];
}

interface OpenCall {
  readonly kind: "call";
  readonly id: string;
  readonly index: number;
  readonly callId: string;
  readonly name: string;
  text: string;
}

function toolCallOf({ callId, name, text }: OpenCall): ToolCall {
  return { id: callId, type: "function", function: { name, arguments: text } };
}

/** Status of a response whose text ended for a reason, and why it is incomplete. */
function endState(reason: TextFinishReason): [status: string, incomplete?: string] {
  if (reason === "length") return ["incomplete", "max_output_tokens"];
  return reason === "content_filter" ? ["incomplete", reason] : ["completed"];
}

function messageItem(id: string, status: string, content: readonly object[]): object {
  return { id, type: "message", status, role: "assistant", content };
}

function reasoningItem(id: string, status: string, content: readonly object[]): object {
  return { id, type: "reasoning", status, summary: [], content };
}

function reasoningPart(text: string): object {
  return { type: "reasoning_text", text };
}

function textPart(text: string, logprobs: readonly object[]): object {
  return { type: "output_text", text, annotations: [], logprobs };
}

function callItem(id: string, call: ToolCall, status: string): object {
  const { name, arguments: text } = call.function;
  return { id, type: "function_call", status, call_id: call.id, name, arguments: text };
}

function responseUsage({ prompt_tokens, completion_tokens, total_tokens }: Usage): object {
  return {
    input_tokens: prompt_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completion_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens,
  };
}
