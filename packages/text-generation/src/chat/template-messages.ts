import { TritonError } from "@tritonjs/protocol";
import type { ChatContentPart, ChatMessage, ChatToolCall } from "./chat-message.js";

/** How a template wants the arguments of earlier calls: as objects, or as the JSON text that it joins itself. */
export type ArgumentsForm = "object" | "text";

/**
 * Turns messages into the form that templates read: content is text or null, members without a value are absent, and
 * the arguments of earlier calls are objects.
 *
 * @throws TritonError INVALID_ARG for content that is not text, and for arguments that are not a JSON object
 */
export function templateMessages(
  messages: readonly ChatMessage[],
  form: ArgumentsForm,
): readonly Record<string, unknown>[] {
  return messages.map((message, index) => {
    const entry: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(message)) {
      if (value !== undefined && value !== null) entry[key] = value;
    }
    entry.content = contentText(message, index);
    const calls = message.tool_calls ?? [];
    if (calls.length > 0) entry.tool_calls = calls.map((call) => templateCall(call, index, form));
    else delete entry.tool_calls;
    return entry;
  });
}

/** Text of a message. Parts are joined by a line break, as in vLLM. Only an assistant may have none. */
function contentText({ content, role }: ChatMessage, index: number): string | null {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return role === "assistant" ? null : "";
  return content.map((part) => partText(part, index)).join("\n");
}

function partText(part: ChatContentPart, index: number): string {
  if (part.type === "text" && typeof part.text === "string") return part.text;
  throw new TritonError(
    "INVALID_ARG",
    `cannot read the content of messages[${index}]: expected parts of the type "text", got "${part.type}"`,
  );
}

function templateCall(call: ChatToolCall, index: number, form: ArgumentsForm): Record<string, unknown> {
  const given = call.function.arguments;
  const parsed = typeof given === "string" ? parseArguments(given, call.function.name, index) : (given ?? {});
  const text = typeof given === "string" ? given : JSON.stringify(parsed);
  const entry: Record<string, unknown> = {
    type: "function",
    function: { name: call.function.name, arguments: form === "text" ? text : parsed },
  };
  if (call.id !== undefined) entry.id = call.id;
  return entry;
}

function parseArguments(text: string, name: string, index: number): unknown {
  if (text.trim() === "") return {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed;
  } catch {
    // Reported below.
  }
  throw new TritonError(
    "INVALID_ARG",
    `cannot read the arguments of the call of "${name}" in messages[${index}]: expected a JSON object, got ${shorten(text)}`,
  );
}

function shorten(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text);
}
