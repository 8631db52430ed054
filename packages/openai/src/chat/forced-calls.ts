import { createToolCallReader, type ToolCallPiece } from "@tritonjs/text-generation";
import { newId } from "../generation/ids.js";
import type { ToolCallText } from "../generation/text-choice.js";
import type { Tool, ToolUse } from "./tools.js";

/** Schema of a function without parameters. */
const NO_PARAMETERS = { type: "object", properties: {} };

/**
 * The response format that forces a model to call a tool: the arguments of a named tool, or an array of calls.
 *
 * @returns undefined if the model may answer with text
 */
export function forcedFormat({ tools, choice, parallel }: ToolUse): object | undefined {
  if (choice === "auto") return undefined;
  if (choice !== "required") return jsonSchema("tool_arguments", parametersOf(tools[0]!));
  const calls = tools.map((tool) => ({
    type: "object",
    properties: { name: { const: tool.function.name }, arguments: parametersOf(tool) },
    required: ["name", "arguments"],
    additionalProperties: false,
  }));
  return jsonSchema("tool_calls", {
    type: "array",
    minItems: 1,
    ...(!parallel && { maxItems: 1 }),
    items: calls.length === 1 ? calls[0] : { anyOf: calls },
  });
}

/** Reads the text of a model that was forced to call a tool. */
export function forcedCallText({ tools, choice }: ToolUse): ToolCallText | undefined {
  if (choice === "auto") return undefined;
  return typeof choice === "object"
    ? new NamedCallText(choice.name)
    : new CallsOnlyText(createToolCallReader("json", { tools }));
}

function jsonSchema(name: string, schema: object): object {
  return { type: "json_schema", json_schema: { name, schema, strict: true } };
}

function parametersOf(tool: Tool): object {
  return tool.function.parameters ?? NO_PARAMETERS;
}

/** All text is the arguments of one call. */
class NamedCallText implements ToolCallText {
  readonly #name: string;
  #begun = false;

  constructor(name: string) {
    this.#name = name;
  }

  push(text: string): readonly ToolCallPiece[] {
    const pieces: ToolCallPiece[] = [];
    if (!this.#begun) {
      const named = { name: this.#name, arguments: "" };
      pieces.push({ index: 0, id: newId("call_"), type: "function", function: named });
      this.#begun = true;
    }
    pieces.push({ index: 0, function: { arguments: text } });
    return pieces;
  }

  end(): readonly ToolCallPiece[] {
    return [];
  }
}

/** Leaves out the text after the first call, such as the beginning of a call that the model could not finish. */
class CallsOnlyText implements ToolCallText {
  readonly #reader: ToolCallText;
  #begun = false;

  constructor(reader: ToolCallText) {
    this.#reader = reader;
  }

  push(text: string): readonly ToolCallPiece[] {
    return this.#calls(this.#reader.push(text));
  }

  end(): readonly ToolCallPiece[] {
    return this.#calls(this.#reader.end());
  }

  #calls(pieces: readonly ToolCallPiece[]): readonly ToolCallPiece[] {
    return pieces.filter((piece) => {
      if ("content" in piece) return !this.#begun;
      this.#begun = true;
      return true;
    });
  }
}

/** Leaves out all calls but the first, for `parallel_tool_calls: false`. */
export class FirstCallText implements ToolCallText {
  readonly #reader: ToolCallText;

  constructor(reader: ToolCallText) {
    this.#reader = reader;
  }

  push(text: string): readonly ToolCallPiece[] {
    return this.#reader.push(text).filter(isFirst);
  }

  end(): readonly ToolCallPiece[] {
    return this.#reader.end().filter(isFirst);
  }
}

function isFirst(piece: ToolCallPiece): boolean {
  return "content" in piece || piece.index === 0;
}
