import { invalidField, shown, wrongType } from "../errors/openai-error.js";
import { type Fields, objectFields } from "../fields/fields.js";

/** A function that the model may call. */
export interface Tool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description?: string;
    readonly parameters?: Readonly<Record<string, unknown>>;
  };
}

/** Calls that the model may make: none, as it likes, at least one, or one of a named function. */
export type ToolChoice = "none" | "auto" | "required" | { readonly name: string };

/** The tools of a request. Without any, the prompt mentions no tools. */
export interface ToolUse {
  readonly tools: readonly Tool[];
  readonly choice: ToolChoice;
  /** Whether the model may call several functions in one answer. */
  readonly parallel: boolean;
}

/** Largest number of tools in a request, as in OpenAI's API. */
export const MOST_TOOLS = 128;
const NAME = /^[\w.-]{1,64}$/;

/**
 * Reads `tools`, `tool_choice` and `parallel_tool_calls`.
 *
 * @returns undefined if the model may not call a tool
 * @throws OpenAiError 400 that names the tool at fault
 */
export function readToolUse(fields: Fields): ToolUse | undefined {
  const given = fields.array("tools") ?? [];
  const parallel = fields.boolean("parallel_tool_calls") ?? true;
  if (given.length > MOST_TOOLS) {
    throw invalidField(
      "tools",
      `'tools': expected at most ${MOST_TOOLS} tools, got ${given.length}`,
      "array_above_max_length",
    );
  }
  const tools = given.map((tool, index) => readTool(objectFields(tool, `tools[${index}]`), tool));
  const choice = readToolChoice(fields.any("tool_choice"), tools);
  if (choice === "none" || tools.length === 0) return undefined;
  return {
    tools: typeof choice === "object" ? tools.filter((tool) => isNamed(tool, choice)) : tools,
    choice,
    parallel,
  };
}

function readTool(fields: Fields, tool: unknown): Tool {
  fields.choice("type", ["function"]);
  const described = fields.object("function");
  if (described === undefined) throw wrongType(fields.path("function"), "an object", undefined);
  const name = described.requiredString("name");
  if (!NAME.test(name)) {
    const path = described.path("name");
    throw invalidField(
      path,
      `'${path}': expected 1 to 64 letters, digits, '_', '.' or '-', got ${shown(name)}`,
    );
  }
  described.string("description");
  described.object("parameters");
  return { ...(tool as Tool), type: "function" };
}

function readToolChoice(value: unknown, tools: readonly Tool[]): ToolChoice {
  if (value === undefined) return "auto";
  if (value === "none") return value;
  if (value === "auto" || value === "required") {
    if (tools.length > 0 || value === "auto") return value;
    throw invalidField("tool_choice", "'tool_choice': expected 'tools' beside it, got none");
  }
  const fields = objectFields(value, "tool_choice");
  fields.choice("type", ["function"]);
  const name = (fields.object("function") ?? fields).requiredString("name");
  if (!tools.some((tool) => isNamed(tool, { name }))) {
    throw invalidField(
      "tool_choice",
      `'tool_choice': expected the name of one of the tools, got ${shown(name)}`,
    );
  }
  return { name };
}

function isNamed(tool: Tool, { name }: { readonly name: string }): boolean {
  return tool.function.name === name;
}
