import { type Message, readMessages } from "../chat/messages.js";
import { invalidField, OpenAiError, shown } from "../errors/openai-error.js";
import { Fields, objectFields } from "../fields/fields.js";

/** Kinds of text in the content of an item. */
const TEXT_PARTS = new Set(["input_text", "output_text", "text"]);

/**
 * Reads `input` of the Responses API as the messages of a chat.
 *
 * @throws OpenAiError 400 that names the item at fault
 */
export function readInputItems(fields: Fields): readonly Message[] {
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
      messages.push({ role: item.requiredString("role"), content: contentOf(item) });
      return;
    case "function_call":
      addCall(messages, item);
      return;
    case "function_call_output":
      messages.push({ role: "tool", tool_call_id: item.requiredString("call_id"), content: outputOf(item) });
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

function contentOf(item: Fields): string {
  const content = item.any("content");
  if (typeof content === "string") return content;
  const path = item.path("content");
  if (!Array.isArray(content))
    throw invalidField(
      path,
      `'${path}': expected a string or an array, got ${shown(content)}`,
      "invalid_type",
    );
  return content.map((part, index) => textOf(objectFields(part, `${path}[${index}]`))).join("\n");
}

function outputOf(item: Fields): string {
  const output = item.any("output");
  return Array.isArray(output)
    ? output.map((part, index) => textOf(objectFields(part, item.path(`output[${index}]`)))).join("\n")
    : item.requiredString("output");
}

function textOf(part: Fields): string {
  const type = part.requiredString("type");
  if (TEXT_PARTS.has(type)) return part.string("text") ?? "";
  if (type === "refusal") return part.string("refusal") ?? "";
  const path = part.path("type");
  throw new OpenAiError(400, `'${path}': expected text, got ${type}`, {
    param: path,
    code: "unsupported_content",
  });
}
