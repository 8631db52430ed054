import { invalidField, wrongType } from "../errors/openai-error.js";
import { type Fields, objectFields } from "../fields/fields.js";

/** A message of a chat, as the request has it. */
export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly [member: string]: unknown;
}

const ROLES = ["system", "developer", "user", "assistant", "tool", "function"] as const;

/**
 * Reads and checks the messages of a chat.
 *
 * @throws OpenAiError 400 that names the message at fault
 */
export function readMessages(fields: Fields): readonly Message[] {
  const given = fields.array("messages");
  if (given === undefined) {
    const text = "you must provide 'messages': expected an array with at least one message";
    throw invalidField("messages", text, "missing_required_parameter");
  }
  if (given.length === 0) {
    throw invalidField("messages", "'messages': expected at least one message, got none", "empty_array");
  }
  given.forEach((message, index) => {
    checkMessage(objectFields(message, `messages[${index}]`));
  });
  return given as readonly Message[];
}

function checkMessage(message: Fields): void {
  const role = message.choice("role", ROLES);
  if (role === undefined) {
    const path = message.path("role");
    const text = `you must provide '${path}': expected one of ${ROLES.join(", ")}`;
    throw invalidField(path, text, "missing_required_parameter");
  }
  checkContent(message, role);
  const calls = message.array("tool_calls");
  if (role === "tool" && message.string("tool_call_id") === undefined) {
    const path = message.path("tool_call_id");
    throw invalidField(
      path,
      `'${path}': expected the id of the call that the message answers, got none`,
      "missing_required_parameter",
    );
  }
  calls?.forEach((call, index) => {
    const fields = objectFields(call, message.path(`tool_calls[${index}]`));
    const called = fields.object("function");
    if (called === undefined) throw wrongType(fields.path("function"), "an object", undefined);
    called.requiredString("name");
    called.string("arguments");
  });
}

function checkContent(message: Fields, role: string): void {
  const content = message.any("content");
  const path = message.path("content");
  if (typeof content === "string") return;
  if (content === undefined) {
    const hasCalls = message.any("tool_calls") !== undefined || message.any("function_call") !== undefined;
    // A refusal has its text in `refusal`.
    if (role === "assistant" && (hasCalls || message.any("refusal") !== undefined)) return;
    throw invalidField(
      path,
      `you must provide '${path}': expected a string or an array of parts`,
      "missing_required_parameter",
    );
  }
  if (!Array.isArray(content)) throw wrongType(path, "a string or an array of parts", content);
  if (content.length === 0)
    throw invalidField(path, `'${path}': expected at least one part, got none`, "empty_array");
  content.forEach((part, index) => {
    const fields = objectFields(part, `${path}[${index}]`);
    const type = fields.requiredString("type");
    if (type !== "text") return;
    if (fields.string("text") === undefined) throw wrongType(fields.path("text"), "a string", undefined);
  });
}

/**
 * The messages for a chat template, which takes text only. The role `developer` is newer than most templates and
 * becomes `system`.
 *
 * @throws OpenAiError 400 for an image, audio or a file
 */
export function textMessages(messages: readonly Message[], model: string): readonly Message[] {
  return messages.map((message, index) => {
    const { content, role } = message;
    if (Array.isArray(content)) {
      for (const [part, { type }] of (content as { type: string }[]).entries()) {
        if (type === "text") continue;
        const path = `messages[${index}].content[${part}]`;
        throw invalidField(
          path,
          `'${path}': expected text, got ${type}: model '${model}' takes only text`,
          "unsupported_content",
        );
      }
    }
    return role === "developer" ? { ...message, role: "system" } : message;
  });
}
