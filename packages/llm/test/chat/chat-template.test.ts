import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "@huggingface/jinja";
import { ChatTemplate, type ChatTool } from "@tritonjs/llm";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { thrownBy } from "../../../../test/support/outcome.js";
import { templateValue } from "../../src/chat/python-values.js";
import { RenderBudget } from "../../src/chat/render-budget.js";
import { renderInParts } from "../../src/chat/template-evaluator.js";
import { templateTokens } from "../../src/chat/template-tokens.js";
import { allParts, type Parts, Turns } from "../../src/turns.js";

describe("chat templates", () => {
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
          message:
            'cannot read the content of messages[0]: expected parts of the type "text", got "image_url"',
        }),
      );
    });

    it("passes the arguments of earlier calls as objects, or as text to a template that joins them", () => {
      const call = { id: "c1", function: { name: "add", arguments: '{"a": 1}' } };
      const messages = [{ role: "assistant", content: null, tool_calls: [call] }];
      const print =
        "{{ messages[0].tool_calls[0].function.arguments['a'] }} {{ messages[0].content is none }}";
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

  const NESTED = (made: string) =>
    `{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ${made} %}{% endfor %}`;

  const STEPS = "expected at most \\d+ steps, got more";

  const BYTES = "expected values of at most \\d+ bytes, got more";

  const EITHER = `(${STEPS}|${BYTES})`;

  const CALLS = "expected at most 200 calls of macros within each other, got more";

  const DEEP = "expected values and expressions that nest less deep";

  describe("a hostile chat template", () => {
    it.each([
      [
        "loops within each other",
        "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
        STEPS,
      ],
      [
        "a macro that calls itself twice",
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        STEPS,
      ],
      [
        "such a macro within an expression",
        "{% macro f(n) %}{% if n %}{{ f(n-1) ~ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
        STEPS,
      ],
      [
        "macros that call each other",
        "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ 'a' ~ f() }}{% endmacro %}{{ f() }}",
        CALLS,
      ],
      [
        "callers",
        `{% macro f() %}{{ caller() }}{{ caller() }}{% endmacro %}${"{% call f() %}".repeat(40)}x${"{% endcall %}".repeat(40)}`,
        STEPS,
      ],
      ["a list that is doubled", `${NESTED("ns.l + ns.l")}{{ ns.l | length }}`, EITHER],
      ["a text that is doubled", `${NESTED("ns.l ~ ns.l")}{{ ns.l | length }}`, EITHER],
      ...[
        ["printed", "ns.l"],
        ["written as JSON", "ns.l | tojson"],
        ["joined", "','.join([ns.l])"],
        ["taken as a number", "(ns.l | abs) ~ (ns.l | int) ~ ns.l"],
        ["taken as a name", "{} | attr(ns.l)"],
        ["taken as a test", "[1] | select(ns.l) | list"],
      ].map(([what, text]) => [
        `a list in itself that is ${what}`,
        `${NESTED("[ns.l, ns.l]")}{{ ${text} }}`,
        `(${EITHER}|No test)`,
      ]),
      [
        "lists in themselves that are compared",
        "{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
        STEPS,
      ],
      [
        "a list of one list of one list",
        "{% set ns = namespace(l=[1]) %}{% for i in range(5000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
        DEEP,
      ],
      ["a text times a number", "{{ '\\n' * 500000000 }}", BYTES],
      ["a list times a number", "{{ [0] * 1000000000 }}", BYTES],
      ["ranges", "{{ range(100000) | list }}".repeat(30), EITHER],
      ["replaced letters", "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}", BYTES],
      ["replaced places", "{{ ('a' * 100000).replace('', 'b' * 100000) }}", BYTES],
      ["joined texts", "{{ range(100000) | join('b' * 100000) }}", EITHER],
      ["indented lines", "{{ ('\\n' * 100000) | indent(100000, true, true) }}", EITHER],
      ["indented JSON", "{{ [1, 2] | tojson(indent=500000000) }}", BYTES],
      ["filled texts", "{{ 'a'.ljust(1000000000) }}", BYTES],
      ["filled numbers", "{{ 'a'.zfill(1000000000) }}", BYTES],
      ["filled rows", "{{ [1] | batch(1000000000, 'x') }}", BYTES],
      ["rows of nothing", "{{ [1] | batch(0) }}", "batch of 0 elements"],
      ["steps of almost nothing", "{{ range(10)[0:10:0.0000001] }}", "slice step cannot be zero"],
      ["formats", "{{ '%s' % ('x' * 9000000) }}", EITHER],
      ["formats with names", "{{ ('{0}' * 100000).format('x' * 100000) }}", EITHER],
      ["a search for a long text", "{{ ('b' ~ 'a' * 1000000) in 'a' * 2000000 }}", STEPS],
      [
        "words from the end",
        "{{ ('x ' * 500000).rsplit(none, 400000) | length }}{{ ' ' * 9000000 }}",
        EITHER,
      ],
      ["lists without repeats", "{{ range(100000) | unique | list | length }}", STEPS],
      ["sorted lists", "{{ range(100000) | sort | length }}", STEPS],
      [
        "filters on filters",
        `${"{% filter upper %}".repeat(100)}{{ 'a' * 1000000 }}${"{% endfilter %}".repeat(100)}`,
        EITHER,
      ],
      ["dates", "{{ strftime_now('%B' * 10000000) }}", BYTES],
      ["a chain of sums", `{{ 1${" + 1".repeat(30000)} }}`, DEEP],
    ] as [string, string, string][])("is refused with its budget and its name: %s", (_what, text, why) => {
      const template = ChatTemplate.from(text, { modelName: "story" });
      expect(thrownBy(() => render(template))).toMatch(
        new RegExp(`^INVALID_ARG cannot render the chat template of the given text of model 'story': ${why}`),
      );
    });

    it.each([
      ...["{{", "{%", "{#", "{{-", "{% raw %}", "{{ [", "{{ (", "{{ '", "{{ {"].map((part) => [
        part,
        part.repeat(20_000),
      ]),
      ["brackets", `{{ ${"(".repeat(50_000)}1${")".repeat(50_000)} }}`],
      ["elif", `{% if a %}${"{% elif a %}".repeat(20_000)}{% endif %}`],
      ["not", `{{ ${"not ".repeat(50_000)}a }}`],
      ["a megabyte", "x".repeat(2 ** 20)],
      ["an open block", "{% if x %}"],
      ["spaces", `{{ ${" ".repeat(200_000)}`],
    ])("is refused when it is parsed, in linear time: %s", (_what, text) => {
      expect(thrownBy(() => ChatTemplate.from(text, { modelName: "story" }))).toMatch(
        /^INVALID_ARG cannot parse the chat template of the given text of model 'story': /,
      );
    });

    it("is looked at in linear time for the form of calls", () => {
      for (const mark of ["<|channel|>", "Action:", "<think>", "<|role_sep|>", "tools { "]) {
        expect(ChatTemplate.from(`tools ${mark.repeat(20_000)}`).toolCallFamily).toBeUndefined();
      }
    });
  });

  describe("the budget of a chat template", () => {
    const fitting =
      "{% for m in messages %}{{ m.role | upper }}: {{ m.content.strip() | replace('a', 'bb') }}\n{% endfor %}";

    it("grows with the messages", () => {
      const many = Array.from({ length: 10_000 }, () => ({ role: "user", content: "aa" }));
      expect(render(ChatTemplate.from(fitting), { messages: many })).toBe("USER: bbbb\n".repeat(10_000));
      const long = [{ role: "user", content: "a".repeat(3_000_000) }];
      expect(render(ChatTemplate.from(fitting), { messages: long })).toHaveLength(6_000_007);
    });

    it("is spent in turns of the event loop, between which other requests are answered", async () => {
      const messages = Array.from({ length: 20_000 }, () => ({ role: "user", content: "aa" }));
      const events: string[] = [];
      const prompt = Promise.resolve(
        ChatTemplate.from(fitting).renderInTurns({ messages, addGenerationPrompt: false }),
      ).then((text) => {
        events.push("prompt");
        return text;
      });
      const others = Promise.all(
        [1, 2].map(async () => {
          await new Promise(setImmediate);
          events.push("other");
        }),
      );
      await others;
      expect(await prompt).toHaveLength(20_000 * 11);
      expect(events).toEqual(["other", "other", "prompt"]);
    });

    it("is not spent for a request that has ended", async () => {
      const messages = Array.from({ length: 20_000 }, () => ({ role: "user", content: "aa" }));
      const request = new AbortController();
      const prompt = ChatTemplate.from(fitting).renderInTurns(
        { messages, addGenerationPrompt: false },
        request.signal,
      );
      request.abort();
      await expect(prompt).rejects.toThrow(expect.objectContaining({ code: "CANCELLED" }));
    });
  });
});

const recorded = JSON.parse(
  readFileSync(new URL("../fixtures/jinja2-templates.json", import.meta.url), "utf8"),
) as {
  readonly variables: Readonly<Record<string, unknown>>;
  readonly templates: readonly { readonly template: string; readonly text: string | null }[];
};

const variables = {
  ...Object.fromEntries(
    Object.entries(recorded.variables).map(([name, value]) => [
      name,
      templateValue(value, { values: 0, characters: 0 }),
    ]),
  ),
  raise_exception: () => {
    throw new Error("no");
  },
};

describe("the evaluator of templates", () => {
  it.each(recorded.templates)("renders as jinja2 does: $template", ({ template, text }) => {
    const render = () => {
      const program = parse(templateTokens(template.replace(/\r\n?/g, "\n")));
      return allParts(renderInParts(program, variables, new RenderBudget()));
    };
    if (text === null) expect(render).toThrow();
    else expect(render()).toBe(text);
  });
});

/** An event loop whose turns are made by hand, and work whose parts take two milliseconds each. */
function handmadeLoop() {
  let time = 0;
  const due: (() => void)[] = [];
  const turns = new Turns({ now: () => time, defer: (run) => due.push(run) });
  const done: string[] = [];
  function* work(name: string, parts: number): Parts<string> {
    for (let part = 0; part < parts; part++) {
      time += 2;
      done.push(name);
      yield;
    }
    return name;
  }
  return {
    turns,
    work,
    done,
    nextTurn: () => {
      for (const run of due.splice(0)) run();
    },
  };
}

describe("turns of the event loop", () => {
  it("does short work at once, and five milliseconds of long work in each turn", async () => {
    const { turns, work, done, nextTurn } = handmadeLoop();
    expect(turns.run(work("short", 1))).toBe("short");
    const long = turns.run(work("long", 5));
    expect(done.filter((name) => name === "long")).toHaveLength(2);
    nextTurn();
    expect(done.filter((name) => name === "long")).toHaveLength(5);
    nextTurn();
    expect(await long).toBe("long");
  });

  it("alternates between requests, so that one of them does not wait for 64 others", async () => {
    const { turns, work, nextTurn } = handmadeLoop();
    const hostile = Array.from({ length: 64 }, (_, i) => turns.run(work(`hostile ${i}`, 1000)));
    const honest = Promise.resolve(turns.run(work("honest", 2)));
    let settled = false;
    void honest.then(() => {
      settled = true;
    });
    for (let turn = 0; turn < 100 && !settled; turn++) {
      nextTurn();
      await Promise.resolve();
    }
    expect(settled).toBe(true);
    expect(hostile).toHaveLength(64);
  });

  it("ends work whose request has ended, and passes errors on", async () => {
    const { turns, work, nextTurn } = handmadeLoop();
    const request = new AbortController();
    const cancelled = turns.run(work("cancelled", 100), request.signal);
    function* failing(): Parts<string> {
      yield* work("failing", 3);
      throw new Error("no");
    }
    const failed = turns.run(failing());
    const outcomes = Promise.allSettled([cancelled, failed]);
    request.abort();
    for (let turn = 0; turn < 5; turn++) nextTurn();
    expect(await outcomes).toMatchObject([
      { status: "rejected", reason: { code: "CANCELLED" } },
      { status: "rejected", reason: { message: "no" } },
    ]);
  });
});
