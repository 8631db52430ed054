import {
  createToolCallReader,
  type ToolCallFamily,
  type ToolCallPiece,
  type ToolCallReaderOptions,
} from "@tritonjs/llm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const tools = [{ function: { name: "get_weather" } }, { function: { name: "add" } }];

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
    ["pythonic", "Weather: [get_weather(city='Rome')]"],
    ["deepseek", "<｜tool▁calls▁begin｜>none<｜tool▁calls▁end｜>"],
    ["deepseek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>x<｜tool▁call▁end｜>"],
    ["hermes", " \n "],
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

  it("makes ids that the family's template accepts", () => {
    const id = (family: ToolCallFamily) =>
      createToolCallReader(family, { tools })
        .push(TEXTS[family])
        .find((piece) => "id" in piece);
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
