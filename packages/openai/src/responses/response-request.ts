import type { Chat, RequestLimits } from "../chat/chat-request.js";
import { readToolUse } from "../chat/tools.js";
import { invalidField, OpenAiError } from "../errors/openai-error.js";
import { Fields, objectFields } from "../fields/fields.js";
import { MOST_TOKENS, readSampling } from "../fields/sampling-fields.js";
import { readInputItems } from "./input-items.js";

/** A request of the Responses API. */
export interface ResponseRequest {
  readonly chat: Chat;
  /** Members of the request that the response repeats. */
  readonly echoed: Readonly<Record<string, unknown>>;
}

/** Fields for features that the server lacks: stored responses, and runs without a client. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
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
export function readResponseRequest(fields: Fields, { defaultMaxTokens }: RequestLimits): ResponseRequest {
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
  const tools = readTools(fields);
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
  for (const [name, reason] of Object.entries(UNSUPPORTED)) {
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
function readTools(fields: Fields): unknown[] {
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
