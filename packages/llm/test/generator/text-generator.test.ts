import { type InferOptions, Triton, TritonError } from "@tritonjs/core";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../test/support/outcome.js";
import {
  ChatTemplate,
  type GeneratorRequest,
  type TextCallback,
  type TextGeneratorOptions,
  textGenerator,
} from "../../src/index.js";

let triton: Triton;
afterEach(() => triton.close());

function bind(callback: TextCallback, options?: TextGeneratorOptions) {
  triton = new Triton();
  return triton.bind({ modelName: "text", inferFunc: textGenerator(callback, options) });
}

type Handle = ReturnType<typeof bind>;
type Inputs = Parameters<Handle["stream"]>[0];

/** The responses to a request, each with its outputs by name. */
async function responses(handle: Handle, inputs: Inputs, options?: InferOptions) {
  const seen: Record<string, unknown>[] = [];
  for await (const outputs of handle.stream(inputs, options)) {
    const entries = Object.entries(outputs as Record<string, { text?(): string; get(at: number): unknown }>);
    const value = ([name, array]: (typeof entries)[number]) =>
      [name, name.startsWith("num_") ? array.get(0) : array.text!()] as const;
    seen.push(Object.fromEntries(entries.map(value)));
  }
  return seen;
}

const sampling = (values: object) => [JSON.stringify(values)];
const words = async function* () {
  yield "one ";
  yield "two ";
  yield "three";
};

describe("a text generator", () => {
  it("streams a response for each piece", async () => {
    const handle = bind(words);
    expect(await responses(handle, { text_input: ["count: "], stream: [true] })).toEqual([
      { text_output: "one " },
      { text_output: "two " },
      { text_output: "three" },
    ]);
  });

  it("answers with a single response that begins with the prompt, unless it is excluded", async () => {
    const handle = bind(words);
    expect(await responses(handle, { text_input: ["count: "] })).toEqual([
      { text_output: "count: one two three" },
    ]);
    const inputs = { text_input: ["count: "], exclude_input_in_output: [true] };
    expect(await responses(handle, inputs)).toEqual([{ text_output: "one two three" }]);
  });

  it("sends the outputs that the request asks for", async () => {
    const handle = bind(async function* () {
      yield {
        text: "a",
        logprobs: [{ token: "a", id: 7, logprob: -0.5, top: [{ token: "b", id: 2, logprob: -0.25 }] }],
      };
      yield { text: "bc", tokens: 2 };
      yield { usage: { promptTokens: 5, completionTokens: 4 }, finishReason: "stop" };
    });
    const wants = {
      return_finish_reason: [true],
      return_logprobs: [true],
      return_num_input_tokens: [true],
      return_num_output_tokens: [true],
    };
    const logprobs =
      '[{"7":{"logprob":-0.5,"rank":2,"decoded_token":"a"},"2":{"logprob":-0.25,"rank":1,"decoded_token":"b"}}]';
    expect(await responses(handle, { text_input: ["p"], stream: [true], ...wants })).toEqual([
      { text_output: "a", finish_reason: "null", logprobs, num_output_tokens: 1 },
      { text_output: "bc", finish_reason: "null", logprobs: "null", num_output_tokens: 2 },
      { text_output: "", finish_reason: "stop", logprobs: "null", num_input_tokens: 5, num_output_tokens: 1 },
    ]);
    expect(await responses(handle, { text_input: ["p"], ...wants })).toEqual([
      { text_output: "pabc", finish_reason: "stop", logprobs, num_input_tokens: 5, num_output_tokens: 4 },
    ]);
  });

  it("passes on prompts, chats, tools and sampling parameters", async () => {
    const seen: GeneratorRequest[] = [];
    const handle = bind(async (request) => {
      seen.push(request);
      return "ok";
    });
    const messages = [{ role: "user", content: "hi" }];
    const tools = [{ type: "function", function: { name: "clock", parameters: {} } }];
    await responses(handle, {
      text_input: ["hi"],
      sampling_parameters: sampling({ temperature: 0.5, stop: "." }),
    });
    await responses(
      handle,
      { messages: [JSON.stringify(messages)], tools: [JSON.stringify(tools)] },
      {
        parameters: { max_tokens: 3, top_k: 5, chat_template_kwargs: '{"enable_thinking":false}' },
      },
    );
    const given = { parallelToolCalls: true, addGenerationPrompt: true };
    expect(seen).toEqual([
      { ...given, prompt: "hi", sampling: { temperature: 0.5, stop: ["."] } },
      {
        ...given,
        messages,
        tools,
        toolChoice: "auto",
        templateVariables: { enable_thinking: false },
        sampling: { maxTokens: 3, topK: 5 },
      },
    ]);
  });

  const toolNamed = (name: string) => ({ type: "function", function: { name } });
  const pair = [toolNamed("clock"), toolNamed("add")];
  const schema = { type: "object", properties: { a: { type: "integer" } } };
  const held = { type: "json_schema", schema };

  it.each([
    [{}, { toolChoice: "auto", tools: pair }],
    [{ tool_choice: "none" }, { toolChoice: "none", tools: undefined }],
    [
      { tool_choice: "auto", parallel_tool_calls: false },
      { toolChoice: "auto", parallelToolCalls: false },
    ],
    [{ tool_choice: "required" }, { toolChoice: "required", tools: pair }],
    [{ tool_choice: toolNamed("add") }, { toolChoice: { name: "add" }, tools: [pair[1]] }],
    [{ tool_choice: { type: "function", name: "add" } }, { toolChoice: { name: "add" }, tools: [pair[1]] }],
    [
      { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "required", tools: [pair[0]] } } },
      { toolChoice: "required", tools: [pair[0]] },
    ],
    [
      { tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "add" }] } },
      { toolChoice: "auto", tools: [pair[1]] },
    ],
    [{ response_format: { type: "text" } }, { responseFormat: { type: "text" } }],
    [{ response_format: { type: "json_object" } }, { responseFormat: { type: "json_object" } }],
    [{ response_format: { type: "json_object", schema } }, { responseFormat: held }],
    [{ response_format: { type: "json_object", schema: {} } }, { responseFormat: { type: "json_object" } }],
    [{ response_format: { type: "json_schema", json_schema: { schema } } }, { responseFormat: held }],
    [{ guided_json: schema }, { responseFormat: held }],
    [{ structured_outputs: { regex: "a+" } }, { responseFormat: { type: "regex", pattern: "a+" } }],
  ])(
    "passes %j on to a callback that obeys it, and refuses demands for any other",
    async (fields, expected) => {
      const seen: GeneratorRequest[] = [];
      const record = (request: GeneratorRequest) => {
        seen.push(request);
        return "ok";
      };
      const chat = { messages: ['[{"role":"user","content":"?"}]'], tools: [JSON.stringify(pair)] };
      const asTensor = { ...chat, sampling_parameters: sampling(fields) };
      const entries = Object.entries(fields).map(
        ([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)] as const,
      );
      const asParameters = { parameters: Object.fromEntries(entries) };
      const obeying = bind(record, { obeys: ["toolChoice", "responseFormat"] });
      await responses(obeying, asTensor);
      await responses(obeying, chat, asParameters);
      expect(seen).toEqual([expect.objectContaining(expected), expect.objectContaining(expected)]);
      await triton.close();
      const { toolChoice = "auto", responseFormat: format } = seen[0]!;
      const demandsCall = toolChoice !== "auto" && toolChoice !== "none";
      const demand = demandsCall
        ? "toolChoice"
        : (format?.type ?? "text") === "text"
          ? undefined
          : "responseFormat";
      const other = bind(record, { obeys: demandsCall ? ["responseFormat"] : ["toolChoice"] });
      const outcomes = [
        await outcomeOf(responses(other, asTensor)),
        await outcomeOf(responses(other, chat, asParameters)),
      ];
      const field = demandsCall ? "tool_choice" : "response_format";
      const refused = new RegExp(
        `^INVALID_ARG sampling parameter '${field}': .*model 'text'.*obeys: \\["${demand}"\\]`,
      );
      for (const one of outcomes)
        expect(one).toEqual(demand === undefined ? expect.anything() : expect.stringMatching(refused));
      expect(seen).toHaveLength(demand === undefined ? 4 : 2);
    },
  );

  it("makes the prompt of a chat with a template", async () => {
    const chatTemplate = {
      render: ({
        messages,
        addGenerationPrompt,
      }: {
        messages: readonly { content?: unknown }[];
        addGenerationPrompt: boolean;
      }) => `${messages.map(({ content }) => content).join("|")}${addGenerationPrompt ? "|" : ""}`,
    };
    const handle = bind(({ prompt }) => `<${prompt}>`, { chatTemplate });
    const messages = JSON.stringify([{ role: "user", content: "hi" }]);
    expect(await responses(handle, { messages: [messages] })).toEqual([{ text_output: "<hi|>" }]);
    expect(await responses(handle, { text_input: ["plain"], exclude_input_in_output: [true] })).toEqual([
      { text_output: "<plain>" },
    ]);
  });

  it("ends the text at a stop string over the border of pieces, and ends the generator", async () => {
    let ended = false;
    const handle = bind(async function* () {
      try {
        yield* ["Hello wo", "rld. Bye", " now"];
      } finally {
        ended = true;
      }
    });
    const request = { text_input: ["p"], stream: [true], return_finish_reason: [true] };
    expect(
      await responses(handle, { ...request, sampling_parameters: sampling({ stop: ["world", "!"] }) }),
    ).toEqual([
      { text_output: "Hello ", finish_reason: "null" },
      { text_output: "", finish_reason: "stop" },
    ]);
    expect(ended).toBe(true);
  });

  it("ends the text at max_tokens, and says so", async () => {
    const handle = bind(words);
    const texts = (max_tokens: number) =>
      responses(handle, {
        text_input: [""],
        return_finish_reason: [true],
        return_num_output_tokens: [true],
        sampling_parameters: sampling({ max_tokens }),
      });
    expect(await texts(2)).toEqual([
      { text_output: "one two ", finish_reason: "length", num_output_tokens: 2 },
    ]);
    expect(await texts(4)).toEqual([
      { text_output: "one two three", finish_reason: "stop", num_output_tokens: 3 },
    ]);
  });

  it("sends calls of tools, whole or in parts", async () => {
    const handle = bind(async function* () {
      yield { toolCall: { name: "clock", arguments: { zone: "UTC" }, id: "c1" } };
      yield { toolCall: { name: "add", id: "c2" } };
      yield { toolCall: { arguments: '{"a":' } };
      yield { toolCall: { arguments: "1}" } };
    });
    const request = { messages: ['[{"role":"user","content":"?"}]'], return_finish_reason: [true] };
    const [whole] = await responses(handle, request);
    expect(whole).toMatchObject({ text_output: "", finish_reason: "tool_calls" });
    expect(JSON.parse(whole!.tool_calls as string)).toEqual([
      { index: 0, id: "c1", type: "function", function: { name: "clock", arguments: '{"zone":"UTC"}' } },
      { index: 1, id: "c2", type: "function", function: { name: "add", arguments: '{"a":1}' } },
    ]);
    const streamed = await responses(handle, { ...request, stream: [true] });
    expect(streamed.map(({ tool_calls }) => tool_calls && JSON.parse(tool_calls as string))).toEqual([
      [{ index: 0, id: "c1", type: "function", function: { name: "clock", arguments: '{"zone":"UTC"}' } }],
      [{ index: 1, id: "c2", type: "function", function: { name: "add", arguments: "" } }],
      [{ index: 1, function: { arguments: '{"a":' } }],
      [{ index: 1, function: { arguments: "1}" } }],
      undefined,
    ]);
  });

  it("leaves calls after the first one out for a request without parallel calls", async () => {
    const handle = bind(function* () {
      yield { toolCall: { name: "clock", arguments: '{"zone":', index: 1 } };
      yield { toolCall: { name: "add", arguments: "{}", index: 4 } };
      yield { toolCall: { arguments: '"UTC"}', index: 1 } };
    });
    const request = { messages: ['[{"role":"user","content":"?"}]'] };
    const one = { ...request, sampling_parameters: sampling({ parallel_tool_calls: false }) };
    const [answer] = await responses(handle, one);
    const calls = JSON.parse(answer!.tool_calls as string);
    expect(calls).toMatchObject([{ function: { name: "clock", arguments: '{"zone":"UTC"}' } }]);
    expect(JSON.parse((await responses(handle, request))[0]!.tool_calls as string)).toHaveLength(2);
  });

  it("sends reasoning apart from the text, where the request asks for it", async () => {
    const handle = bind(async function* () {
      yield { reasoning: "I th" };
      yield { reasoning: "ink." };
      yield "Hello";
    });
    const stream = { text_input: ["p"], stream: [true] };
    const wants = { return_reasoning_content: [true] };
    expect(await responses(handle, { ...stream, ...wants })).toEqual([
      { text_output: "", reasoning_content: "I th" },
      { text_output: "", reasoning_content: "ink." },
      { text_output: "Hello", reasoning_content: "" },
    ]);
    expect(await responses(handle, stream)).toEqual([{ text_output: "Hello" }]);
    expect(await responses(handle, { ...stream, stream: [false], ...wants })).toEqual([
      { text_output: "pHello", reasoning_content: "I think." },
    ]);
  });

  it("has the inputs and outputs of a text model, without any specification", () => {
    const { inputs, outputs } = bind(words).metadata();
    expect(inputs.map(({ name }) => name)).toContain("text_input");
    expect(outputs.map(({ name }) => name)).toContain("text_output");
  });
});

describe("a text generator with a chat template", () => {
  const template =
    "{% for tool in tools or [] %}{{ tool.function.name }} {% endfor %}<tool_call>" +
    "{% for message in messages %}|{{ message.content }}{% endfor %}";
  const messages = ['[{"role":"user","content":"What time is it?"}]'];
  const tools = ['[{"type":"function","function":{"name":"clock"}}]'];

  it("finds calls of tools in the text, in the form of the template's models", async () => {
    const prompts: unknown[] = [];
    const handle = bind(
      async function* ({ prompt }) {
        prompts.push(prompt);
        yield "Let me see. <tool_";
        yield 'call>{"name": "clock", "arguments": {"zone": "UTC"}}</tool_call>';
        yield { finishReason: "stop" };
      },
      { chatTemplate: ChatTemplate.from(template) },
    );
    const [answer] = await responses(handle, { messages, tools, return_finish_reason: [true] });
    expect(prompts).toEqual(["clock <tool_call>|What time is it?"]);
    expect(answer).toMatchObject({ text_output: "Let me see. ", finish_reason: "tool_calls" });
    const [call] = JSON.parse(answer!.tool_calls as string);
    expect(call.function).toEqual({ name: "clock", arguments: '{"zone": "UTC"}' });
    const [plain] = await responses(handle, { messages, return_finish_reason: [true] });
    expect(plain).toMatchObject({ finish_reason: "stop" });
    expect(plain!.text_output).toContain("<tool_call>");
  });

  it("refuses messages that the template rejects", async () => {
    const rejecting = "{{ raise_exception('only one message, please') }}";
    const handle = bind(words, { chatTemplate: ChatTemplate.from(rejecting) });
    expect(await outcomeOf(responses(handle, { messages }))).toBe(
      "INVALID_ARG the chat template rejects the messages: only one message, please",
    );
  });
});

describe("bad input of a text generator", () => {
  it.each([
    [
      "no prompt",
      {},
      "model 'text': expected one of the inputs 'text_input' and 'messages', got none of them",
    ],
    [
      "both",
      { text_input: ["a"], messages: ["[]"] },
      "model 'text': expected one of the inputs 'text_input' and 'messages', got both",
    ],
    ["no message", { messages: ["[]"] }, "input 'messages': expected at least one message, got none"],
    [
      "a message without a role",
      { messages: ['[{"content":"a"}]'] },
      `input 'messages[0]': expected an object with a role, got {"content":"a"}`,
    ],
    [
      "messages that are not an array",
      { messages: ["{}"] },
      "input 'messages': expected a JSON array, got {}",
    ],
    [
      "tools without a name",
      { text_input: ["a"], tools: ["[{}]"] },
      "input 'tools[0]': expected { type: 'function', function: { name, ... } }, got {}",
    ],
    [
      "a stream with its prompt",
      { text_input: ["a"], stream: [true], exclude_input_in_output: [false] },
      "Error generating stream: When streaming, `exclude_input_in_output` = False is not allowed.",
    ],
    [
      "max_tokens -1",
      { text_input: ["a"], sampling_parameters: ['{"max_tokens":-1}'] },
      "sampling parameter 'max_tokens': expected an integer of at least 0, got -1",
    ],
    [
      "a call without tools",
      { text_input: ["a"], sampling_parameters: ['{"tool_choice":"required"}'] },
      "sampling parameter 'tool_choice': expected none or auto without tools, got \"required\"",
    ],
    [
      "a call of an unknown tool",
      {
        text_input: ["a"],
        tools: ['[{"function":{"name":"clock"}}]'],
        sampling_parameters: ['{"tool_choice":{"type":"function","function":{"name":"add"}}}'],
      },
      "sampling parameter 'tool_choice': expected the name of one of the tools, got \"add\"",
    ],
    [
      "a prompt that has to be cut",
      { text_input: ["a"], sampling_parameters: ['{"truncate_prompt_tokens":5}'] },
      "sampling parameter 'truncate_prompt_tokens': expected no value, because prompts are not cut, got 5",
    ],
    [
      "a text that is not UTF-8",
      { text_input: [Uint8Array.of(0xff)] },
      "input 'text_input': expected text in UTF-8, got other bytes",
    ],
  ] as const)("is refused: %s", async (_, inputs, message) => {
    expect(await outcomeOf(responses(bind(words), inputs as never))).toBe(`INVALID_ARG ${message}`);
  });

  it("is refused in options", () => {
    triton = new Triton();
    expect(thrownBy(() => textGenerator("text" as never))).toBe(
      "INVALID_ARG textGenerator(): callback: expected a function, got string",
    );
    expect(thrownBy(() => textGenerator(words, { concurrency: 0 }))).toBe(
      "INVALID_ARG textGenerator(): concurrency: expected an integer of at least 1, got 0",
    );
    expect(thrownBy(() => textGenerator(words, { paralel: 1 } as never))).toBe(
      "INVALID_ARG textGenerator(): unknown option 'paralel': expected concurrency, chatTemplate, obeys",
    );
    expect(thrownBy(() => textGenerator(words, { obeys: ["tools"] } as never))).toBe(
      'INVALID_ARG textGenerator(): obeys: expected a list of toolChoice and responseFormat, got ["tools"]',
    );
  });

  it.each([
    [
      5,
      "expected a string, or an object with text, reasoning, tokens, logprobs, finishReason, toolCall, usage, got 5",
    ],
    [
      {},
      "expected a string, or an object with text, reasoning, tokens, logprobs, finishReason, toolCall, usage, got an object without any",
    ],
    [{ text: 5 }, "text: expected a string, got 5"],
    [
      { txt: "" },
      "expected a string, or an object with text, reasoning, tokens, logprobs, finishReason, toolCall, usage, got a member 'txt'",
    ],
    [
      { finishReason: "done" },
      'finishReason: expected one of stop, length, tool_calls, content_filter, got "done"',
    ],
    [{ toolCall: { arguments: "1" } }, "toolCall: expected a name in the first piece of a call, got none"],
  ])("of the callback is an error of the request: %j", async (piece, message) => {
    let ended = false;
    const handle = bind(async function* () {
      try {
        yield piece as never;
      } finally {
        ended = true;
      }
    });
    expect(await outcomeOf(responses(handle, { text_input: ["a"] }))).toBe(
      `INTERNAL model 'text': cannot use a piece of textGenerator: ${message}`,
    );
    expect(ended).toBe(true);
  });
});

describe("an error of the callback", () => {
  it("ends the stream after the pieces before it", async () => {
    const handle = bind(async function* () {
      yield "one";
      throw new TritonError("UNAVAILABLE", "the engine is gone");
    });
    const texts: string[] = [];
    const read = (async () => {
      for await (const { text_output } of handle.stream({ text_input: ["a"], stream: [true] })) {
        texts.push(text_output.text());
      }
    })();
    expect(await outcomeOf(read)).toBe("UNAVAILABLE the engine is gone");
    expect(texts).toEqual(["one"]);
  });

  it("before the first piece refuses the request", async () => {
    const handle = bind(() => {
      throw new TritonError("INVALID_ARG", "too long");
    });
    expect(await outcomeOf(responses(handle, { text_input: ["a"] }))).toBe("INVALID_ARG too long");
  });
});
