/**
 * Text around a name: `begin`, the name, `end`, and after `end` perhaps further words up to `rest`, as in
 * `<parameter name="city" string="true">`. Without `end`, the name ends before white space or `<`.
 */
export interface NameTag {
  readonly begin: string;
  readonly end?: string;
  readonly rest?: string;
}

/** How calls are written after the marker of a family. */
export type CallForm =
  /** Objects with a name and arguments: one, several or an array of them. */
  | { readonly kind: "json" }
  /** `[{"name": {…}}]` */
  | { readonly kind: "keyed" }
  /** A name, and the JSON of the arguments. */
  | { readonly kind: "named"; readonly name: NameTag; readonly end: string }
  /** A name, and a tag for each argument. `trims` tells that a line break belongs to each side of a value's tags. */
  | {
      readonly kind: "tagged";
      readonly name: NameTag;
      readonly end: string;
      readonly key: NameTag;
      readonly value: { readonly begin: string; readonly end: string; readonly trims?: true };
    }
  /** Calls in Python's syntax. */
  | { readonly kind: "python" }
  /** `call:name{key:value}` with `quote` around strings. */
  | { readonly kind: "braces"; readonly quote: string }
  /** `[…]` of objects, or names with arguments, of Mistral. */
  | { readonly kind: "mistral" }
  /** Messages with a header for each channel, of harmony. */
  | { readonly kind: "channels" }
  /** `>>>name`, a line break and the arguments, of functionary. The text begins after `>>>`. */
  | { readonly kind: "recipients" };

interface FamilyForm {
  /** Text that the chat template of a model of this family contains. */
  readonly fits: Pick<RegExp, "test">;
  /** Markers before calls. Without any, the text itself begins with a call. */
  readonly open: readonly string[];
  /** Markers after calls, which may be missing. */
  readonly close?: readonly string[];
  readonly calls: CallForm;
  /** Further special tokens of the form. */
  readonly tokens?: readonly string[];
}

/** Tests in linear time that a text has two others in this order. */
export function inOrder(first: string, second: string): Pick<RegExp, "test"> {
  return {
    test: (text) => {
      const at = text.indexOf(first);
      return at >= 0 && text.includes(second, at + first.length);
    },
  };
}

const XML_PARAMETER = { begin: "<parameter=", end: ">" } as const;

/**
 * How models write calls of tools, by family. A template belongs to the first family that it fits, so the special marks
 * come before the common ones.
 */
const FORMS = {
  /** `<|channel|>commentary to=functions.name<|message|>{…}<|call|>`, of gpt-oss. */
  harmony: {
    fits: inOrder("<|channel|>", "functions."),
    open: [],
    calls: { kind: "channels" },
    tokens: ["<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>"],
  },
  /** `<｜DSML｜invoke name="name">` with a tag for each argument, of DeepSeek V3.2 and V4. */
  deepseek_v32: {
    fits: /｜DSML｜/,
    open: ["<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"],
    close: ["</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"],
    calls: {
      kind: "tagged",
      name: { begin: '<｜DSML｜invoke name="', end: '"', rest: ">" },
      end: "</｜DSML｜invoke>",
      key: { begin: '<｜DSML｜parameter name="', end: '"', rest: ">" },
      value: { begin: "", end: "</｜DSML｜parameter>" },
    },
  },
  /** DeepSeek's own tokens around the name and the arguments, of V3, R1 and V3.1. */
  deepseek: {
    fits: /<｜tool▁calls▁begin｜>/,
    open: ["<｜tool▁calls▁begin｜>"],
    close: ["<｜tool▁calls▁end｜>"],
    calls: {
      kind: "named",
      name: { begin: "<｜tool▁call▁begin｜>", end: "<｜tool▁sep｜>" },
      end: "<｜tool▁call▁end｜>",
    },
  },
  /** `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}`, of Kimi K2. */
  kimi_k2: {
    fits: /<\|tool_calls_section_begin\|>/,
    open: ["<|tool_calls_section_begin|>"],
    close: ["<|tool_calls_section_end|>"],
    calls: {
      kind: "named",
      name: { begin: "<|tool_call_begin|>", end: "<|tool_call_argument_begin|>" },
      end: "<|tool_call_end|>",
    },
  },
  /** `<invoke name="name">` with `<parameter name="key">value</parameter>`, of MiniMax M2. */
  minimax_m2: {
    fits: /<minimax:tool_call>/,
    open: ["<minimax:tool_call>"],
    close: ["</minimax:tool_call>"],
    calls: {
      kind: "tagged",
      name: { begin: '<invoke name="', end: '"', rest: ">" },
      end: "</invoke>",
      key: { begin: '<parameter name="', end: '"', rest: ">" },
      value: { begin: "", end: "</parameter>" },
    },
  },
  /** The form of `qwen3_coder` between `<seed:tool_call>` and its end, of Seed-OSS. */
  seed_oss: {
    fits: /seed:tool_call/,
    open: ["<seed:tool_call>"],
    close: ["</seed:tool_call>"],
    calls: {
      kind: "tagged",
      name: { begin: "<function=", end: ">" },
      end: "</function>",
      key: XML_PARAMETER,
      value: { begin: "", end: "</parameter>", trims: true },
    },
  },
  /** `<tool_call>name` with `<arg_key>key</arg_key><arg_value>value</arg_value>`, of GLM 4.5 and later. */
  glm: {
    fits: /<arg_key>/,
    open: ["<tool_call>"],
    calls: {
      kind: "tagged",
      name: { begin: "" },
      end: "</tool_call>",
      key: { begin: "<arg_key>", end: "</arg_key>" },
      value: { begin: "<arg_value>", end: "</arg_value>" },
    },
  },
  /** `<function=name>` with `<parameter=key>value</parameter>`, of Qwen 3 Coder, Qwen 3.5 and Nemotron 3. */
  qwen3_coder: {
    fits: inOrder("<function=", "<parameter="),
    open: ["<tool_call>", "<function="],
    close: ["</tool_call>"],
    calls: {
      kind: "tagged",
      name: { begin: "<function=", end: ">" },
      end: "</function>",
      key: XML_PARAMETER,
      value: { begin: "", end: "</parameter>", trims: true },
    },
  },
  /** `<function=name>{…}</function>`, of functionary 3.1. */
  functionary: {
    fits: /<function=/,
    open: ["<function="],
    calls: { kind: "named", name: { begin: "", end: ">" }, end: "</function>" },
  },
  /** `>>>name`, a line break and `{…}`, of functionary 3.2. */
  functionary_v32: { fits: />>>all/, open: [], calls: { kind: "recipients" } },
  /** `<function name="name">` with `<param name="key">value</param>`, of MiniCPM 5. */
  minicpm: {
    fits: inOrder("<function name=", "<param name="),
    open: ['<function name="'],
    calls: {
      kind: "tagged",
      name: { begin: "", end: '"', rest: ">" },
      end: "</function>",
      key: { begin: '<param name="', end: '"', rest: ">" },
      value: { begin: "", end: "</param>" },
    },
  },
  /** `<|tool_call_start|>[name(key="value")]<|tool_call_end|>`, of LFM2. */
  lfm2: {
    fits: /<\|tool_(call|list)_start\|>|"List of tools: \["/,
    open: ["<|tool_call_start|>"],
    close: ["<|tool_call_end|>"],
    calls: { kind: "python" },
  },
  /** A call in Python's syntax in each line of `<function_calls>`, of OLMo 3. */
  olmo3: {
    fits: /<function_calls>/,
    open: ["<function_calls>"],
    close: ["</function_calls>"],
    calls: { kind: "python" },
  },
  /** `<|tool_call|>[{"name": …, "arguments": {…}}]`, of Granite 3 and Phi-4-mini. */
  granite: {
    fits: /<\|tool_call\|>/,
    open: ["<|tool_call|>"],
    close: ["<|/tool_call|>"],
    calls: { kind: "json" },
  },
  /** `<TOOLCALL>[{"name": …, "arguments": {…}}]</TOOLCALL>`, of Nemotron Nano and Super. */
  nemotron: {
    fits: /<TOOLCALL>/,
    open: ["<TOOLCALL>"],
    close: ["</TOOLCALL>"],
    calls: { kind: "json" },
  },
  /** `<|tools_prefix|>[{"name": {…}}]<|tools_suffix|>`, of Apertus. */
  apertus: {
    fits: /<\|tools_prefix\|>/,
    open: ["<|tools_prefix|>"],
    close: ["<|tools_suffix|>"],
    calls: { kind: "keyed" },
  },
  /** `<|START_ACTION|>[{"tool_name": …, "parameters": {…}}]<|END_ACTION|>`, of Command R7B and Command A. */
  command: {
    fits: /<\|START_ACTION\|>/,
    open: ["<|START_ACTION|>"],
    close: ["<|END_ACTION|>"],
    calls: { kind: "json" },
  },
  /** `Action:` and a fence with `[{"tool_name": …, "parameters": {…}}]`, of Command R and R+. */
  command_r: {
    fits: inOrder("Action:", "```json"),
    open: ["Action:\n```json", "Action: ```json", "Action:```json"],
    close: ["```"],
    calls: { kind: "json" },
  },
  /** `<|tool_call>call:name{key:<|"|>value<|"|>}<tool_call|>`, of Gemma 4. */
  gemma4: {
    fits: /<\|tool_call>/,
    open: ["<|tool_call>"],
    close: ["<tool_call|>"],
    calls: { kind: "braces", quote: '<|"|>' },
    tokens: ['<|"|>'],
  },
  /** The form of `gemma4` with `<escape>` around strings, of FunctionGemma. */
  functiongemma: {
    fits: /<start_function_call>/,
    open: ["<start_function_call>"],
    close: ["<end_function_call>"],
    calls: { kind: "braces", quote: "<escape>" },
    tokens: ["<escape>"],
  },
  /** `<tool_calls>[{"name": …, "arguments": {…}}]</tool_calls>`, of Apriel, Jamba, Hunyuan and MiniMax M1. */
  apriel: {
    fits: /<tool_calls>/,
    open: ["<tool_calls>"],
    close: ["</tool_calls>"],
    calls: { kind: "json" },
  },
  /** `<|function_call|>{"name": …, "arguments": {…}}`, of GigaChat 3. */
  gigachat: {
    fits: {
      test: (text: string) =>
        (text.includes("'function call'") && text.includes("<|role_sep|>")) ||
        text.includes("<|function_call|>"),
    },
    open: ["<|message_sep|>\n\nfunction call<|role_sep|>", "function call<|role_sep|>", "<|function_call|>"],
    close: ["<|message_sep|>"],
    calls: { kind: "json" },
    tokens: ["<|role_sep|>"],
  },
  /** `<|action_start|><|plugin|>{"name": …, "arguments": {…}}<|action_end|>`, of InternLM 2 and 2.5. */
  internlm: {
    fits: /<\|action_start\|>/,
    open: ["<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"],
    close: ["<|action_end|>"],
    calls: { kind: "json" },
    tokens: ["<|action_start|>", "<|plugin|>"],
  },
  /** `<function_call> {"name": …, "arguments": {…}}`, of Granite 20B for functions. */
  granite_20b: { fits: /<function_call>/, open: ["<function_call>"], calls: { kind: "json" } },
  /** `functools[{"name": …, "arguments": {…}}]`, of FireFunction. */
  firefunction: { fits: /functools\[/, open: ["functools"], calls: { kind: "json" } },
  /** `[TOOL_CALLS][{"name": …, "arguments": {…}}]`, and `[TOOL_CALLS]name{…}` of later models. */
  mistral: {
    fits: /\[TOOL_CALLS\]/,
    open: ["[TOOL_CALLS]"],
    calls: { kind: "mistral" },
    tokens: ["[CALL_ID]", "[ARGS]"],
  },
  /** `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, of Hermes, Qwen 2.5 and 3, Granite 4 and SmolLM3. */
  hermes: {
    // MiniMax M3 writes something else between the same words.
    fits: /^(?!.*minimax).*<tool_call>/s,
    open: ["<tool_call>"],
    close: ["</tool_call>"],
    calls: { kind: "json" },
  },
  /** `[name(key="value")]`, of Llama 3.2 and Llama 4, which may also write the form of `llama3`. */
  pythonic: {
    fits: /<\|python_start\|>|\[func_name1?\(/,
    open: [],
    calls: { kind: "python" },
    tokens: ["<|python_start|>", "<|python_end|>"],
  },
  /** `{"name": …, "parameters": {…}}`, after `<|python_tag|>` or without it, of Llama 3 and 4. */
  llama3: {
    fits: /<\|python_tag\|>|<\|(start_header_id|header_start)\|>/,
    open: [],
    calls: { kind: "json" },
    tokens: ["<|python_tag|>"],
  },
  /** One object or an array of them, without any marker. */
  json: {
    fits: /^(?![\s\S]*function_calls>)[\s\S]*\{\s*\\?["']name\\?["']\s*:/,
    open: [],
    calls: { kind: "json" },
  },
} as const satisfies Readonly<Record<string, FamilyForm>>;

/** Form in which a model writes calls of tools. One of {@link TOOL_CALL_FAMILIES}. */
export type ToolCallFamily = keyof typeof FORMS;

/** Forms in which models write calls of tools. docs/openai.md describes them. */
export const TOOL_CALL_FAMILIES = Object.keys(FORMS) as readonly ToolCallFamily[];

/** How a family writes its calls. */
export function formOf(family: ToolCallFamily): FamilyForm {
  return FORMS[family];
}

/** Variables in which templates take tools. */
const TOOLS = /\b(tools|xml_tools|python_tools|functions)\b/;

/** Family of a template that has tools or their calls; undefined if the template shows none of the known forms. */
export function detectToolCallFamily(template: string): ToolCallFamily | undefined {
  // Some templates render earlier calls, and leave the description of the tools to the client.
  if (!TOOLS.test(template) && !template.includes("tool_calls")) return undefined;
  return TOOL_CALL_FAMILIES.find((family) => FORMS[family].fits.test(template));
}

/**
 * Special tokens with which a family writes its calls. A model that generates for a request with tools keeps them in
 * its text, where it leaves out other special tokens.
 */
export const TOOL_CALL_TOKENS = Object.fromEntries(
  TOOL_CALL_FAMILIES.map((family) => [family, tokensOf(FORMS[family])]),
) as Readonly<Record<ToolCallFamily, readonly string[]>>;

function tokensOf({ open, close = [], calls, tokens = [] }: FamilyForm): readonly string[] {
  const marks = [...open, ...close, ...tokens];
  if (calls.kind !== "named" && calls.kind !== "tagged") return marks;
  const { begin, end } = calls.name;
  return [...marks, begin, ...(end === undefined ? [] : [end]), calls.end].filter((mark) => mark !== "");
}
