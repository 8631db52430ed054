import type { AnswerReader } from "./answer-reader.js";
import type { ChatTool } from "./chat-template.js";
import type { AnswerPiece } from "./tool-call-pieces.js";
import { createToolCallReader, randomId } from "./tool-call-reader.js";

/** Calls that the model may make: none, as it likes, at least one, or one of a named function. */
export type ToolChoice = "none" | "auto" | "required" | { readonly name: string };

/** The tools of a request. Without any, the prompt mentions no tools. */
export interface ToolUse {
  readonly tools: readonly ChatTool[];
  readonly choice: ToolChoice;
  /** Whether the model may call several functions in one answer. */
  readonly parallel: boolean;
}

/** Expected value of `tool_choice`, and the one that a request has instead. */
interface ToolChoiceFault {
  readonly expected: string;
  readonly got: unknown;
}

/**
 * Reads `tool_choice` as chat completions and responses of OpenAI write it. The result has only the tools that it allows.
 *
 * @param given tools of the request
 */
export function readToolChoice(
  value: unknown,
  given: readonly ChatTool[],
): Pick<ToolUse, "tools" | "choice"> | ToolChoiceFault {
  if (value === undefined || value === "none" || value === "auto") {
    return { tools: given, choice: value ?? "auto" };
  }
  const { type = "function", ...chosen } = Object(value) as Readonly<Record<string, unknown>>;
  const { mode, tools: allowed } = Object(chosen.allowed_tools ?? chosen) as Readonly<
    Record<string, unknown>
  >;
  const isList = type === "allowed_tools";
  const choice = isList ? mode : value;
  const isChoice = choice === "required" || (isList ? choice === "auto" : typeof value === "object");
  const entries: readonly unknown[] = isList ? (Array.isArray(allowed) ? allowed : []) : [value];
  if (!isChoice || entries.length === 0 || !(isList || type === "function")) {
    const forms =
      "none, auto, required, a function, or allowed_tools with a mode of auto or required and tools";
    return { expected: forms, got: value };
  }
  if (given.length === 0) return { expected: "none or auto without tools", got: value };
  if (value === "required") return { tools: given, choice: "required" };
  const isGiven = (entry: unknown) => given.some((tool) => tool.function.name === nameOf(entry));
  const unknown = entries.find((entry) => !isGiven(entry));
  if (unknown !== undefined) {
    return { expected: "the name of one of the tools", got: nameOf(unknown) ?? unknown };
  }
  const names = entries.map(nameOf);
  const tools = given.filter((tool) => names.includes(tool.function.name));
  return { tools, choice: isList ? (choice as "auto" | "required") : { name: names[0] as string } };
}

/** The name of a function, which chat completions have one level deeper than responses. */
function nameOf(entry: unknown): unknown {
  const { name, function: inner } = Object(entry) as { name?: unknown; function?: { name?: unknown } };
  return inner?.name ?? name;
}

const NO_PARAMETERS = { type: "object", properties: {} };

/**
 * The schema of a text that has to call a tool: the arguments of a named tool, or an array of calls.
 *
 * @returns undefined if the model may answer with other text
 */
function forcedSchema({ tools, choice, parallel }: ToolUse): object | undefined {
  if (choice === "auto" || choice === "none") return undefined;
  if (choice !== "required") return parametersOf(tools[0]!);
  const calls = tools.map((tool) => ({
    type: "object",
    properties: { name: { const: tool.function.name }, arguments: parametersOf(tool) },
    required: ["name", "arguments"],
    additionalProperties: false,
  }));
  return {
    type: "array",
    minItems: 1,
    ...(!parallel && { maxItems: 1 }),
    items: calls.length === 1 ? calls[0] : { anyOf: calls },
  };
}

function parametersOf(tool: ChatTool): object {
  return tool.function.parameters ?? NO_PARAMETERS;
}

/** The format of a text that has to call a tool; undefined if the model may answer with other text. */
export function forcedFormat(
  use: ToolUse,
): { readonly type: "json_schema"; readonly schema: object } | undefined {
  const schema = forcedSchema(use);
  return schema && { type: "json_schema", schema };
}

/** Reads the text of a model that was forced to call a tool. */
export function forcedCallText({ tools, choice }: ToolUse): AnswerReader {
  if (typeof choice === "object") return namedCallText(choice.name);
  let begun = false;
  // Beginnings of calls that the model could not finish are left out: what follows a call, and an array without any.
  return filtered(createToolCallReader("json", { tools }), (piece) => {
    if ("content" in piece && !begun) begun = /^\s*\[/.test(piece.content);
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
        id: `call_${randomId(24)}`,
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

/** Leaves some pieces of an answer out. */
export function filtered(reader: AnswerReader, keeps: (piece: AnswerPiece) => boolean): AnswerReader {
  return { push: (text) => reader.push(text).filter(keeps), end: () => reader.end().filter(keeps) };
}
