import { collectAnswer, streamAnswer } from "./answers.js";
import { planChat } from "./chat-completions.js";
import { type Chat, type Message, type RequestLimits, readMessages, readToolUse } from "./chat-request.js";
import { invalidField, OpenAiError, shown } from "./openai-error.js";
import { jsonResult, lookUpModel, type OpenAiRoute, readRequest } from "./openai-exchange.js";
import { Fields, MOST_TOKENS, objectFields, readSampling } from "./request-fields.js";
import { ResponseEvents, responseAnswer, responseFrame } from "./response-events.js";

/** Route of the Responses API, with text and calls of functions: `POST /v1/responses`. */
export const responsesRoute: OpenAiRoute = {
  path: /^\/v1\/responses$/,
  method: "POST",
  group: "inference",
  access: "inference",
  async handle(exchange) {
    const { chat, echoed } = await readRequest(exchange, (fields) => readResponseRequest(fields, exchange));
    const call = await lookUpModel(exchange, chat.model);
    const template = await exchange.templates.find(call.model);
    const plan = planChat(exchange, call, template, chat);
    const frame = responseFrame(echoed);
    if (chat.stream.stream) return streamAnswer(exchange, plan, new ResponseEvents(frame, chat.topLogprobs));
    return jsonResult(responseAnswer(await collectAnswer(exchange, plan), frame, chat.topLogprobs));
  },
};

/** A request of the Responses API. */
interface ResponseRequest {
  readonly chat: Chat;
  /** Members of the request that the response repeats. */
  readonly echoed: Readonly<Record<string, unknown>>;
}

/** Fields for features that the server lacks: stored responses, and runs without a client. */
const UNSUPPORTED_FIELDS: Readonly<Record<string, string>> = {
  previous_response_id: "responses are not stored: send the earlier messages in 'input'",
  conversation: "conversations are not stored: send the earlier messages in 'input'",
  prompt: "prompts are not stored: send 'input' and 'instructions'",
};

const MOST_TOP_LOGPROBS = 20;

/**
 * Reads the body of `POST /v1/responses`: text and calls of functions, without stored responses and OpenAI's own tools.
 *
 * @throws OpenAiError 400 for the first field at fault
 */
function readResponseRequest(fields: Fields, { defaultMaxTokens }: RequestLimits): ResponseRequest {
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
  const toolUse = readToolUse(new Fields({ tools, tool_choice: toolChoice, parallel_tool_calls: parallel }));
  const metadata = fields.object("metadata") === undefined ? {} : fields.any("metadata");
  return {
    chat: {
      model,
      messages,
      toolUse,
      sampling,
      choices: 1,
      topLogprobs,
      stream: { stream, includeUsage: true },
      variables: undefined,
      addGenerationPrompt: true,
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
  for (const [name, reason] of Object.entries(UNSUPPORTED_FIELDS)) {
    if (fields.any(name) === undefined) continue;
    throw new OpenAiError(400, `'${name}': expected none, because ${reason}`, {
      param: name,
      code: "unsupported_parameter",
    });
  }
  if (fields.boolean("background") === true) {
    const text = "'background': expected false, because responses are not stored";
    throw new OpenAiError(400, text, { param: "background", code: "unsupported_parameter" });
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
  if (type === "json_object") return { type };
  const name = format.requiredString("name");
  if (format.object("schema") === undefined) {
    throw invalidField(
      "text.format.schema",
      "'text.format.schema': expected a JSON schema, got none",
      "missing_required_parameter",
    );
  }
  return { type, json_schema: { name, schema: format.any("schema"), strict: format.any("strict") ?? null } };
}

/** Tools as chats have them. */
function readResponseTools(fields: Fields): unknown[] {
  return (fields.array("tools") ?? []).map((tool, index) => {
    const given = objectFields(tool, `tools[${index}]`);
    const type = given.requiredString("type");
    if (type !== "function") {
      const text = `'tools[${index}].type': expected function, got ${type}: tools of OpenAI itself do not run here`;
      throw new OpenAiError(400, text, { param: `tools[${index}].type`, code: "unsupported_value" });
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
function readInputItems(fields: Fields): readonly Message[] {
  const input = fields.any("input");
  if (typeof input === "string") return [{ role: "user", content: input }];
  if (!Array.isArray(input) || input.length === 0) {
    const text = `you must provide 'input': expected a string or an array of items, got ${shown(input)}`;
    throw invalidField("input", text, input === undefined ? "missing_required_parameter" : "invalid_type");
  }
  const messages: Message[] = [];
  for (const [index, item] of input.entries()) addItem(messages, objectFields(item, `input[${index}]`));
  return readMessages(new Fields({ messages }));
}

function addItem(messages: Message[], item: Fields): void {
  const type = item.string("type") ?? "message";
  switch (type) {
    case "message":
      messages.push({ role: item.requiredString("role"), content: contentText(item) });
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
      throw new OpenAiError(400, text, { param: path, code: "unsupported_value" });
    }
  }
}

/** Calls in a row belong to one message of the assistant. */
function addCall(messages: Message[], item: Fields): void {
  const call = {
    id: item.requiredString("call_id"),
    type: "function",
    function: { name: item.requiredString("name"), arguments: item.string("arguments") ?? "{}" },
  };
  const last = messages.at(-1);
  if (last?.role === "assistant") {
    const calls = (last.tool_calls as unknown[] | undefined) ?? [];
    messages[messages.length - 1] = { ...last, tool_calls: [...calls, call] };
  } else messages.push({ role: "assistant", content: null, tool_calls: [call] });
}

function contentText(item: Fields): string {
  const content = item.any("content");
  if (typeof content === "string") return content;
  const path = item.path("content");
  if (!Array.isArray(content))
    throw invalidField(
      path,
      `'${path}': expected a string or an array, got ${shown(content)}`,
      "invalid_type",
    );
  return content.map((part, index) => partText(objectFields(part, `${path}[${index}]`))).join("\n");
}

function outputText(item: Fields): string {
  const output = item.any("output");
  return Array.isArray(output)
    ? output.map((part, index) => partText(objectFields(part, item.path(`output[${index}]`)))).join("\n")
    : item.requiredString("output");
}

function partText(part: Fields): string {
  const type = part.requiredString("type");
  if (TEXT_PARTS.has(type)) return part.string("text") ?? "";
  if (type === "refusal") return part.string("refusal") ?? "";
  const path = part.path("type");
  throw new OpenAiError(400, `'${path}': expected text, got ${type}`, {
    param: path,
    code: "unsupported_content",
  });
}
