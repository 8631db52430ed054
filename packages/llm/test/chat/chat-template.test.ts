import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChatTemplate, type ChatTool } from "@tritonjs/llm";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const CHATML =
  "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
const user = [{ role: "user", content: "Hi" }];
const tool: ChatTool = {
  type: "function",
  function: { name: "add", parameters: { type: "object", properties: { a: { type: "number" } } } },
};

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "chat-template-"));
});
afterEach(() => rm(directory, { recursive: true }));

const write = (name: string, content: unknown) =>
  writeFile(join(directory, name), typeof content === "string" ? content : JSON.stringify(content));
const render = (template: ChatTemplate | undefined, input = {}) =>
  template?.render({ messages: user, addGenerationPrompt: true, ...input });

describe("a chat template", () => {
  it("renders messages with and without the beginning of the answer", async () => {
    await write("tokenizer_config.json", { chat_template: CHATML });
    const template = await ChatTemplate.open(directory);
    const prompt = "<|im_start|>user\nHi<|im_end|>\n";
    expect(render(template, { addGenerationPrompt: false })).toBe(prompt);
    expect(render(template)).toBe(`${prompt}<|im_start|>assistant\n`);
  });

  it("prints special tokens that are texts or objects", async () => {
    const bos = { content: "<s>", lstrip: false };
    await write("tokenizer_config.json", {
      chat_template: "{{ bos_token }}x{{ eos_token }}",
      bos_token: bos,
      eos_token: "</s>",
    });
    expect(render(await ChatTemplate.open(directory))).toBe("<s>x</s>");
  });

  it("takes the named template tool_use for a request with tools", async () => {
    await write("tokenizer_config.json", {
      chat_template: [
        { name: "default", template: "plain" },
        { name: "tool_use", template: "{{ tools | tojson }}" },
      ],
    });
    const template = await ChatTemplate.open(directory);
    expect(render(template)).toBe("plain");
    expect(render(template, { tools: [] })).toBe("plain");
    expect(JSON.parse(render(template, { tools: [tool] }) ?? "")).toEqual([tool]);
  });

  it("prefers a template in a file of its own", async () => {
    await write("tokenizer_config.json", { chat_template: "config" });
    await write("chat_template.json", { chat_template: "json" });
    expect(render(await ChatTemplate.open(directory))).toBe("json");
    await write("chat_template.jinja", "jinja");
    await mkdir(join(directory, "additional_chat_templates"));
    await write("additional_chat_templates/tool_use.jinja", "tools");
    const template = await ChatTemplate.open(directory);
    expect(render(template)).toBe("jinja");
    expect(render(template, { tools: [tool] })).toBe("tools");
  });

  it("is undefined for a model without a template", async () => {
    await write("tokenizer_config.json", { bos_token: "<s>" });
    expect(await ChatTemplate.open(directory)).toBeUndefined();
  });

  it("passes further variables, which do not replace the messages", () => {
    const template = ChatTemplate.from(
      "{{ thinking }} {{ messages[0].content }} {{ add_generation_prompt }}",
    );
    const variables = { thinking: "on", messages: [], add_generation_prompt: false };
    expect(render(template, { variables })).toBe("on Hi True");
  });

  it("formats the date in English, with the codes of Python", () => {
    const now = () => new Date(2026, 1, 3, 14, 5, 9);
    const format = "%d %b %Y, %A %B %-d %y-%m %I:%M:%S %p %H %j %F %T %%";
    expect(render(ChatTemplate.from(`{{ strftime_now('${format}') }}`, { now }))).toBe(
      "03 Feb 2026, Tuesday February %-d 26-02 02:05:09 PM 14 034 2026-02-03 14:05:09 %",
    );
  });

  it("joins the text parts of a content", () => {
    const content = [
      { type: "text", text: "one" },
      { type: "text", text: "two" },
    ];
    const template = ChatTemplate.from("{{ messages[0].content }}");
    expect(render(template, { messages: [{ role: "user", content }] })).toBe("one\ntwo");
    expect(() =>
      render(template, { messages: [{ role: "user", content: [{ type: "image_url" }] }] }),
    ).toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: 'cannot read the content of messages[0]: expected parts of the type "text", got "image_url"',
      }),
    );
  });

  it("passes the arguments of earlier calls as objects, or as text to a template that joins them", () => {
    const call = { id: "c1", function: { name: "add", arguments: '{"a": 1}' } };
    const messages = [{ role: "assistant", content: null, tool_calls: [call] }];
    const print = "{{ messages[0].tool_calls[0].function.arguments['a'] }} {{ messages[0].content is none }}";
    expect(render(ChatTemplate.from(print), { messages })).toBe("1 True");
    const joining = "{{ 'x' + messages[0]['tool_calls'][0]['function']['arguments'] + 'y' }}";
    expect(render(ChatTemplate.from(joining), { messages })).toBe('x{"a": 1}y');
    expect(
      render(ChatTemplate.from("{{ 'tool_calls' in messages[0] }}"), {
        messages: [{ ...user[0], tool_calls: null }],
      }),
    ).toBe("False");
  });

  it("prints numbers in arguments as Python does, with all their digits", () => {
    const text = '{"a": 52.0, "b": 12345678901234567890, "c": [1E16, 1e-5, -0.0, -0, 0.5, 7], "d": "2.0"}';
    const messages = [{ role: "assistant", tool_calls: [{ function: { name: "add", arguments: text } }] }];
    const values = "{% set x = messages[0].tool_calls[0].function.arguments %}";
    const printed = "[1e+16, 1e-05, -0.0, 0, 0.5, 7]";
    expect(render(ChatTemplate.from(`${values}{{ x }}`), { messages })).toBe(
      `{'a': 52.0, 'b': 12345678901234567890, 'c': ${printed}, 'd': '2.0'}`,
    );
    expect(render(ChatTemplate.from(`${values}{{ x | tojson }}`), { messages })).toBe(
      `{"a": 52.0, "b": 12345678901234567890, "c": ${printed}, "d": "2.0"}`,
    );
    const used =
      "{{ x.a is float }}{{ x.b is integer }}{{ x.a is number }}{{ x.a == 52 }}{{ x.a > 3 }}{{ x.a | int }}{{ 'y' if x.c[2] }}";
    expect(render(ChatTemplate.from(values + used), { messages })).toBe("TrueTrueTrueTrueTrue52");
  });

  it.each(["{", "[1]", '"text"'])("rejects the arguments %s of an earlier call", (text) => {
    const messages = [
      ...user,
      { role: "assistant", tool_calls: [{ function: { name: "add", arguments: text } }] },
    ];
    expect(() => render(ChatTemplate.from("x"), { messages })).toThrow(
      `cannot read the arguments of the call of "add" in messages[1]: expected a JSON object, got ${JSON.stringify(text)}`,
    );
  });

  it("rejects messages with the template's own words", () => {
    const template = ChatTemplate.from("{{ raise_exception('Roles must alternate!') }}");
    expect(() => render(template)).toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: "the chat template rejects the messages: Roles must alternate!",
      }),
    );
  });

  it("names the file of a template that cannot be parsed or rendered", async () => {
    await write("tokenizer_config.json", { chat_template: "{% for %}" });
    const file = join(directory, "tokenizer_config.json");
    await expect(ChatTemplate.open(directory)).rejects.toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: expect.stringContaining(`the chat template of ${file}: `),
      }),
    );
    await write("tokenizer_config.json", { chat_template: "{{ messages | nothing }}" });
    const template = await ChatTemplate.open(directory);
    expect(() => render(template)).toThrow(`cannot render the chat template of ${file}: `);
  });

  it.each([
    ["a JSON object, got Expected", "{oops"],
    ["a JSON object, got an array", "[]"],
    ["a JSON object, got null", "null"],
    ['"chat_template" to be a string or a list, got number', '{"chat_template": 7}'],
    [
      'entries of "chat_template" with "name" and "template", got {"name":"x"}',
      '{"chat_template": [{"name": "x"}]}',
    ],
  ])("names a tokenizer_config.json that is broken: expected %s", async (text, content) => {
    await write("tokenizer_config.json", content);
    await expect(ChatTemplate.open(directory)).rejects.toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: expect.stringContaining(
          `cannot read ${join(directory, "tokenizer_config.json")}: expected ${text}`,
        ),
      }),
    );
  });

  it("names a tokenizer_config.json that is missing", async () => {
    await expect(ChatTemplate.open(directory)).rejects.toThrow(
      expect.objectContaining({
        code: "NOT_FOUND",
        message: `cannot read the chat template: expected the file ${join(directory, "tokenizer_config.json")}`,
      }),
    );
  });

  it.each([
    ["hermes", "{% if tools %}<tool_call>{% endif %}"],
    ["llama3", "{% if tools %}<|start_header_id|>{% endif %}"],
    ["mistral", "{% if tools %}[TOOL_CALLS]{% endif %}"],
    ["pythonic", "{% if tools %}[func_name1(params_name1=params_value1)]<|start_header_id|>{% endif %}"],
    ["deepseek", "{% if tools %}<｜tool▁calls▁begin｜>{% endif %}"],
    ["json", '{% if tools %}Answer with {"name": function, "parameters": arguments}{% endif %}'],
    ["qwen3_coder", "{% if tools %}<tool_call><function=name><parameter=key>{% endif %}"],
    ["glm", "{% if tools %}<tool_call>name<arg_key>{% endif %}"],
    ["functionary", "{% if tools %}<|start_header_id|><function=name>{% endif %}"],
    ["harmony", "{% if tools %}<|channel|>commentary to=functions.x{% endif %}"],
    ["internlm", '{% if tools %}<|action_start|><|plugin|>{"name": "{{ x }}"}{% endif %}'],
    ["granite_20b", '{% if tools %}<function_call> {"name": "{{ x }}"}{% endif %}'],
    ["hermes", "{% if xml_tools %}<tool_call>{% endif %}"],
    ["deepseek", "{% if message.tool_calls %}<｜tool▁calls▁begin｜>{% endif %}"],
    [undefined, "{% if tools %}{{ tools | tojson }}{% endif %}"],
    [undefined, "{{ messages[0].content }}"],
  ])("tells that calls have the form %s", (family, text) => {
    expect(ChatTemplate.from(text).toolCallFamily).toBe(family);
  });
});
