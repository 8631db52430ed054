import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ToolCallFamily } from "../../../src/chat/tool-call-family.js";
import type { ToolCallPiece } from "../../../src/chat/tool-call-pieces.js";
import { createToolCallReader, type ToolCallReaderOptions } from "../../../src/chat/tool-call-reader.js";

const tools = [
  {
    function: {
      name: "get_weather",
      parameters: { properties: { city: { type: "string" }, days: { type: "integer" } } },
    },
  },
  { function: { name: "add" } },
];

interface Joined {
  content: string;
  calls: { name: string; arguments: string; id: string }[];
}

/** Reads the pieces of a text, and joins what the reader finds as a client of OpenAI does. */
function read(
  family: ToolCallFamily,
  pieces: readonly string[],
  options: Partial<ToolCallReaderOptions> = {},
): Joined {
  let ids = 0;
  const reader = createToolCallReader(family, { tools, createId: () => `id${ids++}`, ...options });
  return join([...pieces.flatMap((piece) => reader.push(piece)), ...reader.end()]);
}

function join(pieces: readonly ToolCallPiece[]): Joined {
  const joined: Joined = { content: "", calls: [] };
  for (const piece of pieces) {
    if ("content" in piece) {
      joined.content += piece.content;
      continue;
    }
    if (piece.function.name !== undefined) {
      expect(piece.index).toBe(joined.calls.length);
      expect(piece.type).toBe("function");
      joined.calls.push({ name: piece.function.name, arguments: "", id: piece.id ?? "" });
    }
    const call = joined.calls[piece.index];
    if (call === undefined) throw new Error(`a delta of call ${piece.index} came before its first`);
    call.arguments += piece.function.arguments ?? "";
  }
  return joined;
}

/** Calls with their arguments parsed. */
function calls(family: ToolCallFamily, text: string): [string, unknown][] {
  return read(family, [text]).calls.map((call) => [call.name, JSON.parse(call.arguments)]);
}

const paris: [string, unknown] = ["get_weather", { city: "Paris", days: 2 }];
const sum: [string, unknown] = ["add", { a: 1, b: [2, { c: "}" }] }];

const TEXTS: Record<ToolCallFamily, string> = {
  hermes: `Let me see.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n</tool_call>\n<tool_call>{"arguments": {"a": 1, "b": [2, {"c": "}"}]}, "name": "add"}</tool_call>\n`,
  llama3: `<|python_tag|>{"name": "get_weather", "parameters": {"city": "Paris", "days": 2}}; {"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}`,
  mistral: `[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}, {"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}]`,
  pythonic: `[get_weather(city="Paris", days=2), add(a=1, b=[2, {'c': '}'}])]`,
  deepseek: `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n\`\`\`json\n{"city": "Paris", "days": 2}\n\`\`\`<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 1, "b": [2, {"c": "}"}]}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  json: `[{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}, {"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}]`,
  harmony: `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris", "days": 2}<|call|><|start|>assistant to=functions.add<|channel|>commentary<|message|>{"a": 1, "b": [2, {"c": "}"}]}<|call|>`,
  deepseek_v32: `<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name="add">\n<｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>\n<｜DSML｜parameter name="b" string="false">[2, {"c": "}"}]</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>`,
  kimi_k2: `<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris", "days": 2}<|tool_call_end|><|tool_call_begin|>functions.add:1<|tool_call_argument_begin|>{"a": 1, "b": [2, {"c": "}"}]}<|tool_call_end|><|tool_calls_section_end|>`,
  minimax_m2: `<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n<parameter name="days">2</parameter>\n</invoke>\n<invoke name="add">\n<parameter name="a">1</parameter>\n<parameter name="b">[2, {"c": "}"}]</parameter>\n</invoke>\n</minimax:tool_call>`,
  seed_oss: `<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=add>\n<parameter=a>1</parameter>\n<parameter=b>[2, {"c": "}"}]</parameter>\n</function>\n</seed:tool_call>`,
  glm: `<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call><tool_call>add<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key><arg_value>[2, {"c": "}"}]</arg_value></tool_call>`,
  qwen3_coder: `<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n[2, {"c": "}"}]\n</parameter>\n</function>\n</tool_call>`,
  functionary: `<function=get_weather>{"city": "Paris", "days": 2}</function><function=add>{"a": 1, "b": [2, {"c": "}"}]}</function>`,
  functionary_v32: `get_weather\n{"city": "Paris", "days": 2}>>>add\n{"a": 1, "b": [2, {"c": "}"}]}`,
  minicpm: `<function name="get_weather"><param name="city"><![CDATA[Paris]]></param><param name="days">2</param></function>\n<function name="add"><param name="a">1</param><param name="b">[2, {"c": "}"}]</param></function>`,
  lfm2: `<|tool_call_start|>[get_weather(city="Paris", days=2), add(a=1, b=[2, {'c': '}'}])]<|tool_call_end|>`,
  olmo3: `<function_calls>\nget_weather(city="Paris", days=2)\nadd(a=1, b=[2, {'c': '}'}])\n</function_calls>`,
  granite: `<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}, {"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}]`,
  nemotron: `<TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}, {"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}]</TOOLCALL>\n`,
  apertus: `<|tools_prefix|>[{"get_weather": {"city": "Paris", "days": 2}}, {"add": {"a": 1, "b": [2, {"c": "}"}]}}]<|tools_suffix|>`,
  command: `<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Paris", "days": 2}},\n    {"tool_call_id": "1", "tool_name": "add", "parameters": {"a": 1, "b": [2, {"c": "}"}]}}\n]<|END_ACTION|>`,
  command_r: `Action:\n\`\`\`json\n[{"tool_name": "get_weather", "parameters": {"city": "Paris", "days": 2}}, {"tool_name": "add", "parameters": {"a": 1, "b": [2, {"c": "}"}]}}]\n\`\`\``,
  gemma4: `<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|><|tool_call>call:add{a:1,b:[2,{c:<|"|>}<|"|>}]}<tool_call|>`,
  functiongemma: `<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2}<end_function_call><start_function_call>call:add{a:1,b:[2,{c:<escape>}<escape>}]}<end_function_call>`,
  apriel: `<tool_calls>[{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}, {"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}]</tool_calls>`,
  gigachat: `<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}`,
  internlm: `<|action_start|><|plugin|>\n{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}<|action_end|><|action_start|><|plugin|>\n{"name": "add", "parameters": {"a": 1, "b": [2, {"c": "}"}]}}<|action_end|>\n`,
  granite_20b: `<function_call> {"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}\n<function_call> {"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}\n`,
  firefunction: ` functools[{"name": "get_weather", "arguments": {"city": "Paris", "days": 2}}, {"name": "add", "arguments": {"a": 1, "b": [2, {"c": "}"}]}}]`,
};
const FAMILIES = Object.keys(TEXTS) as ToolCallFamily[];

describe("a reader of tool calls", () => {
  it.each(FAMILIES)("reads two calls of the family %s", (family) => {
    expect(calls(family, TEXTS[family])).toEqual([paris, sum]);
    expect(read(family, [TEXTS[family]]).content).toBe(family === "hermes" ? "Let me see.\n" : "");
  });

  it.each<[ToolCallFamily, string, [string, unknown][]]>([
    [
      "hermes",
      `<tool_call>{"name": "add", "arguments": "{\\"a\\": \\"\\u00e9\\ud83d\\ude00\\"}"}`,
      [["add", { a: "é😀" }]],
    ],
    ["hermes", `<tool_call>{"name": "add"}</tool_call>`, [["add", {}]]],
    ["hermes", `<tool_call>{"name": "other", "arguments": null, "id": 7}</tool_call>`, [["other", {}]]],
    ["llama3", `{"type": "function", "name": "add", "parameters": {"a": 1}}`, [["add", { a: 1 }]]],
    [
      "llama3",
      `{"name":"add","parameters":{}}{"name":"add","parameters":{}}`,
      [
        ["add", {}],
        ["add", {}],
      ],
    ],
    [
      "mistral",
      `[TOOL_CALLS]add{"a": 1}[TOOL_CALLS]get_weather[ARGS]{"city": "B"}`,
      [
        ["add", { a: 1 }],
        ["get_weather", { city: "B" }],
      ],
    ],
    ["mistral", `[TOOL_CALLS]add[CALL_ID]abc123def[ARGS]{"a": 1}`, [["add", { a: 1 }]]],
    ["mistral", ` [{"name": "add", "arguments": {"a": 1}}]`, [["add", { a: 1 }]]],
    ["pythonic", `<|python_start|>[add()]<|python_end|>`, [["add", {}]]],
    [
      "pythonic",
      `<|python_start|><|python_end|>{"name": "add", "parameters": {"a": 1}}`,
      [["add", { a: 1 }]],
    ],
    ["pythonic", `{"name": "add", "parameters": {"a": 1}}`, [["add", { a: 1 }]]],
    [
      "pythonic",
      `[add(a=True, b=None, c=-1.5e3, d=(1, .5), e='it\\'s\\n"x"', f={1: 'y'}, g=1234567890123456)]`,
      [
        [
          "add",
          {
            a: true,
            b: null,
            c: -1500,
            d: [1, 0.5],
            e: 'it\'s\n"x"',
            f: { "1": "y" },
            g: 1234567890123456,
          },
        ],
      ],
    ],
    ["deepseek", `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{}`, [["add", {}]]],
    ["qwen3_coder", "<function=add>\n</function>", [["add", {}]]],
    [
      "qwen3_coder",
      '<tool_call><function=get_weather><parameter=city>\n1 "<b>"\n\n😀\n</parameter></function></tool_call>',
      [["get_weather", { city: '1 "<b>"\n\n😀' }]],
    ],
    [
      "qwen3_coder",
      "<tool_call><function=add><parameter=a>\n[1, {'k': 'it\\'s', 2: None}]\n</parameter><parameter=b>\n{'x': [True, \"é\"]}\n</parameter><parameter=c>[see 'it']</parameter></function></tool_call>",
      [["add", { a: [1, { k: "it's", "2": null }], b: { x: [true, "é"] }, c: "[see 'it']" }]],
    ],
    ["glm", "<tool_call>add\n</tool_call>", [["add", {}]]],
    [
      "minimax_m2",
      '<minimax:tool_call><invoke name="add"><parameter name="a">x y</parameter></invoke>',
      [["add", { a: "x y" }]],
    ],
    [
      "gemma4",
      '<|tool_call>call:add{a:true,b:{c:[],d:null},e:<|"|>x,}\n<|"|>}<tool_call|>',
      [["add", { a: true, b: { c: [], d: null }, e: "x,}\n" }]],
    ],
    ["harmony", "<|channel|>analysis to=functions.add code<|message|>{}", [["add", {}]]],
    [
      "apriel",
      '<tool_calls>\n{"name": "add", "arguments": {}}\n{"name": "add", "arguments": {"a": 1}}\n</tool_calls>',
      [
        ["add", {}],
        ["add", { a: 1 }],
      ],
    ],
  ])("reads the form of %s in %s", (family, text, expected) => {
    expect(calls(family, text)).toEqual(expected);
    expect(read(family, [text]).content).toBe("");
  });

  it.each<[ToolCallFamily, string]>([
    ["hermes", "a < b, and <tool is not a tag"],
    ["hermes", "<tool_call>not JSON</tool_call> and more"],
    ["hermes", `<tool_call>{"name": 7, "arguments": {}}</tool_call>`],
    ["hermes", `<tool_call>{"arguments": {}}</tool_call>`],
    ["llama3", `{"name": "Ann", "parameters": {}}`],
    ["llama3", `{"answer": 42}`],
    ["llama3", "It rains."],
    ["json", `{"name": "add", "age": 3}`],
    ["mistral", "[1, 2, 3]"],
    ["mistral", "[TOOL_CALLS] nothing here"],
    ["pythonic", "[1, 2, 3]"],
    ["pythonic", "[unknown(a=1)]"],
    ["pythonic", '{"name": "unknown", "parameters": {"a": 1}}'],
    ["pythonic", "Weather: [get_weather(city='Rome')]"],
    ["deepseek", "<｜tool▁calls▁begin｜>none<｜tool▁calls▁end｜>"],
    ["deepseek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>x<｜tool▁call▁end｜>"],
    ["hermes", " \n "],
    ["qwen3_coder", "if (a <function= b) and <tool_call> alone"],
    ["glm", "<tool_call></tool_call>"],
    ["lfm2", "<|tool_call_start|>nothing"],
    ["gemma4", "<|tool_call>nothing<tool_call|>"],
    ["functionary_v32", "It rains."],
    ["harmony", "It rains."],
    ["apertus", "<|tools_prefix|>[7]<|tools_suffix|>"],
  ])("returns the content of %s that is not a call as it is: %s", (family, text) => {
    expect(read(family, [text])).toEqual({ content: text, calls: [] });
  });

  it("returns what follows a call as content", () => {
    expect(read("hermes", [`<tool_call>{"name":"add","arguments":{}}</tool_call>\nDone.`]).content).toBe(
      "\nDone.",
    );
    expect(read("llama3", [`{"name":"add","parameters":{}} Done.`]).content).toBe(" Done.");
    expect(read("mistral", [`[TOOL_CALLS][{"name":"add","arguments":{}}, 7] x`]).content).toBe(", 7] x");
    expect(read("pythonic", ["[add(a=1)] Done."]).content).toBe(" Done.");
  });

  it("passes the name and the characters of the arguments on as they arrive", () => {
    const reader = createToolCallReader("hermes", { tools, createId: () => "id" });
    expect(reader.push(`Hm <tool_`)).toEqual([{ content: "Hm " }]);
    expect(reader.push(`call>{"name": "add", `)).toEqual([]);
    expect(reader.hasCalls).toBe(false);
    expect(reader.push(`"arguments": {"a`)).toEqual([
      { index: 0, id: "id", type: "function", function: { name: "add", arguments: "" } },
      { index: 0, function: { arguments: `{"a` } },
    ]);
    expect(reader.hasCalls).toBe(true);
    expect(reader.push(`": 1`)).toEqual([{ index: 0, function: { arguments: `": 1` } }]);
    expect(reader.push("}}")).toEqual([{ index: 0, function: { arguments: "}" } }]);
    expect(reader.push("\n</tool_call>")).toEqual([]);
    expect(reader.end()).toEqual([]);
  });

  it("passes the arguments of a call on that the text breaks off", () => {
    const text = `<tool_call>{"name": "add", "arguments": {"a": "lon`;
    expect(read("hermes", [text]).calls).toEqual([{ id: "id0", name: "add", arguments: `{"a": "lon` }]);
  });

  it("passes the strings of a family with tags on as they arrive, and other values when they are whole", () => {
    const reader = createToolCallReader("qwen3_coder", { tools, createId: () => "id" });
    const args = (text: string) =>
      reader.push(text).map((piece) => ("index" in piece ? piece.function.arguments : piece));
    expect(args("<tool_call>\n<function=get_weather>\n<parameter=city>\nNew ")).toEqual([
      "",
      '{"city": "New ',
    ]);
    expect(args("York\n</param")).toEqual(["York"]);
    expect(args("eter>\n<parameter=days>\n1")).toEqual(['", "days": ']);
    expect(args("2\n</parameter>\n</function>\n</tool_call>")).toEqual(["12}"]);
  });

  it("makes ids that the family's template accepts", () => {
    const id = (family: ToolCallFamily) =>
      createToolCallReader(family, { tools })
        .push(TEXTS[family])
        .find((piece) => "id" in piece);
    expect(id("kimi_k2")).toMatchObject({ id: "functions.get_weather:0" });
    expect(id("mistral")).toMatchObject({ id: expect.stringMatching(/^[A-Za-z0-9]{9}$/) });
    expect(id("llama3")).toMatchObject({ id: expect.stringMatching(/^call_[A-Za-z0-9]{24}$/) });
  });

  it("gives up holding text beyond its limit, and passes it on as content", () => {
    const text = `<tool_call>{"name": "${"n".repeat(200)}", "arguments": {}}</tool_call><tool_call>{"name": "add"}`;
    const joined = read("hermes", [...text], { maxHeldCharacters: 100 });
    expect(joined).toEqual({ content: text, calls: [] });
    const space = `x${" ".repeat(500)}y`;
    expect(read("hermes", [space], { maxHeldCharacters: 100 }).content).toBe(space);
  });

  it("does not hold arguments of any length", () => {
    const long = `<tool_call>{"name": "add", "arguments": {"a": "${"x".repeat(100_000)}"}}</tool_call>`;
    const { calls: found, content } = read("hermes", long.match(/.{1,997}/gs) ?? [], {
      maxHeldCharacters: 100,
    });
    expect(content).toBe("");
    expect(JSON.parse(found[0]?.arguments ?? "")).toEqual({ a: "x".repeat(100_000) });
  });

  it.each(FAMILIES)("finds the same for %s however the text is cut into pieces", (family) => {
    const parts = [
      TEXTS[family].slice(0, 30),
      TEXTS[family],
      ...TEXTS[family].split(/(?<=[,:({[>])/),
      "\\ud83d",
      "😀",
      " ",
      "x",
    ];
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 8 }),
        fc.array(fc.nat(400), { maxLength: 30 }),
        (chosen, cuts) => {
          const text = chosen.join("");
          const at = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
          const pieces = at.slice(1).map((end, index) => text.slice(at[index], end));
          expect(read(family, pieces)).toEqual(read(family, [text]));
          expect(read(family, text.split(""))).toEqual(read(family, [text]));
        },
      ),
      { numRuns: 20 },
    );
  });
});
