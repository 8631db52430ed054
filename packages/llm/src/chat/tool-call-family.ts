/**
 * Forms in which models write calls of tools:
 *
 * - `hermes`: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, of Hermes 2 Pro, Qwen 2.5 and Qwen 3.
 * - `llama3`: `{"name": …, "parameters": {…}}`, separated by `;`, after `<|python_tag|>` or without it, of
 *   Llama 3 and 4.
 * - `mistral`: `[TOOL_CALLS][{"name": …, "arguments": {…}}]`, and `[TOOL_CALLS]name{…}` of later models.
 * - `pythonic`: `[name(key="value")]`, of Llama 3.2 and Llama 4.
 * - `deepseek`: DeepSeek's own tokens around the name and the arguments, of V3, R1 and V3.1.
 * - `json`: one object or an array of them, without any marker.
 */
export const TOOL_CALL_FAMILIES = ["hermes", "llama3", "mistral", "pythonic", "deepseek", "json"] as const;

/** Form in which a model writes calls of tools. One of {@link TOOL_CALL_FAMILIES}. */
export type ToolCallFamily = (typeof TOOL_CALL_FAMILIES)[number];

/** Marks of a family in a template. The first family that fits is taken. */
const MARKS: readonly (readonly [ToolCallFamily, (template: string) => boolean])[] = [
  ["deepseek", (template) => template.includes("<｜tool▁calls▁begin｜>")],
  ["mistral", (template) => template.includes("[TOOL_CALLS]")],
  // Qwen 3 Coder writes XML, and GLM keys and values, inside the same marker. They stay content, because there is no
  // reader for them.
  ["hermes", (template) => template.includes("<tool_call>") && !/<function=|<arg_key>/.test(template)],
  ["pythonic", (template) => /<\|python_start\|>|\[func_name1?\(/.test(template)],
  [
    "llama3",
    (template) => /<\|python_tag\|>/.test(template) || /<\|(start_header_id|header_start)\|>/.test(template),
  ],
  ["json", () => true],
];

/** Family of a template that takes tools; undefined if the template does not mention them. */
export function detectToolCallFamily(template: string): ToolCallFamily | undefined {
  if (!/\btools\b/.test(template)) return undefined;
  return MARKS.find(([, fits]) => fits(template))?.[0];
}

/**
 * Special tokens with which a family writes its calls. A model that generates for a request with tools keeps them in
 * its text, where it leaves out other special tokens.
 */
export const TOOL_CALL_TOKENS: Readonly<Record<ToolCallFamily, readonly string[]>> = {
  hermes: ["<tool_call>", "</tool_call>"],
  llama3: ["<|python_tag|>"],
  mistral: ["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"],
  pythonic: ["<|python_start|>", "<|python_end|>"],
  deepseek: [
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
  ],
  json: [],
};

/** Piece of a call of a tool, as in `delta.tool_calls` of a chunk of OpenAI's chat completions. */
export interface ToolCallDelta {
  /** Number of the call in the message, from 0. */
  readonly index: number;
  /** In the first delta of a call. */
  readonly id?: string;
  readonly type?: "function";
  readonly function: {
    /** In the first delta of a call. */
    readonly name?: string;
    /** Next characters of the arguments. All of them joined are a JSON object, if the model wrote one. */
    readonly arguments?: string;
  };
}

/** Piece that a reader of calls found in a text: characters of the answer, or a part of a call. */
export type ToolCallPiece = { readonly content: string } | ToolCallDelta;

/** Joins consecutive changes of one call, so that each call has one entry. */
export function joinDeltas(changes: readonly ToolCallDelta[]): readonly ToolCallDelta[] {
  const deltas: ToolCallDelta[] = [];
  for (const delta of changes) {
    const at = deltas.findIndex(({ index }) => index === delta.index);
    if (at < 0) deltas.push(delta);
    else deltas[at] = joinedDelta(deltas[at]!, delta);
  }
  return deltas;
}

function joinedDelta(first: ToolCallDelta, second: ToolCallDelta): ToolCallDelta {
  const text = (first.function.arguments ?? "") + (second.function.arguments ?? "");
  return { ...first, function: { ...first.function, arguments: text } };
}
