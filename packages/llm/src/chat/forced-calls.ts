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

const NO_PARAMETERS = { type: "object", properties: {} };

/**
 * The schema of a text that has to call a tool: the arguments of a named tool, or an array of calls.
 *
 * @returns undefined if the model may answer with other text
 */
export function forcedSchema({ tools, choice, parallel }: ToolUse): object | undefined {
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

/** Leaves calls after the first one out, for a request without parallel calls. */
export function firstCall(reader: AnswerReader): AnswerReader {
  return filtered(reader, (piece) => !("index" in piece) || piece.index === 0);
}

/** Leaves some pieces of an answer out. */
export function filtered(reader: AnswerReader, keeps: (piece: AnswerPiece) => boolean): AnswerReader {
  return { push: (text) => reader.push(text).filter(keeps), end: () => reader.end().filter(keeps) };
}
