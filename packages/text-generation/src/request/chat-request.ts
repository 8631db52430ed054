import { TritonError } from "@tritonjs/protocol";
import type { ChatMessage, ChatTool } from "../chat/chat-message.js";

/**
 * Reads the JSON of the input `messages`.
 *
 * @throws TritonError INVALID_ARG for anything but an array of messages.
 */
export function parseMessages(json: string): readonly ChatMessage[] {
  const messages = readArray("messages", json);
  if (messages.length === 0) throw invalid("messages", "at least one message", "none");
  messages.forEach((message, i) => {
    const { role, content } = Object(message) as Partial<ChatMessage>;
    if (typeof role !== "string" || role === "") {
      throw invalid(`messages[${i}]`, "an object with a role", describe(message));
    }
    const hasContent = content === undefined || content === null || typeof content === "string";
    if (!hasContent && !Array.isArray(content)) {
      throw invalid(`messages[${i}].content`, "a string, an array of parts or null", describe(content));
    }
  });
  return messages as readonly ChatMessage[];
}

/**
 * Reads the JSON of the input `tools`. Undefined for an empty array.
 *
 * @throws TritonError INVALID_ARG for anything but an array of tools.
 */
export function parseTools(json: string): readonly ChatTool[] | undefined {
  const tools = readArray("tools", json);
  tools.forEach((tool, i) => {
    const name = (Object(tool) as Partial<ChatTool>).function?.name;
    if (typeof name !== "string" || name === "") {
      throw invalid(`tools[${i}]`, "{ type: 'function', function: { name, ... } }", describe(tool));
    }
  });
  return tools.length === 0 ? undefined : (tools as readonly ChatTool[]);
}

function readArray(input: string, json: string): readonly unknown[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw invalid(input, "a JSON array", `text that is not JSON (${(cause as Error).message})`, cause);
  }
  if (!Array.isArray(value)) throw invalid(input, "a JSON array", describe(value));
  return value;
}

function invalid(what: string, expected: string, got: string, cause?: unknown): TritonError {
  return new TritonError("INVALID_ARG", `input '${what}': expected ${expected}, got ${got}`, {
    reason: "INVALID_INPUT",
    cause,
  });
}

function describe(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}
