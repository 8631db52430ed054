import { rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { textGeneration } from "@tritonjs/llm";
import OpenAI from "openai";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { OpenAiOptions } from "../../../src/openai/index.js";
import {
  type Colours,
  dataUrl,
  type PromptPart,
  picture,
  referenceTokens,
  writeColourModel,
} from "../../support/colour-model.js";
import { STORIES } from "../../support/stories.js";
import {
  type Asked,
  bindText,
  eventsOf,
  newTriton,
  post,
  type Said,
  say,
  serveOpenAi,
} from "../support/openai-server.js";

describe("images in chats", () => {
  const RED = [220, 30, 20];

  const GREEN = [10, 200, 40];

  const BLUE = [20, 40, 230];

  let directory: string;

  beforeAll(() => {
    directory = writeColourModel();
  });

  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  let shared: Awaited<ReturnType<typeof serve>>;

  beforeAll(async () => {
    shared = await serve({}, new Triton());
  });

  afterAll(() => shared.triton.close());

  /** A server with a model that sees colours. */
  async function serve(options: OpenAiOptions = {}, triton = newTriton()) {
    triton.bind({ modelName: "colours", inferFunc: textGeneration({ directory, intraOpNumThreads: 1 }) });
    const url = await serveOpenAi(triton, options);
    return { url, triton, openai: new OpenAI({ baseURL: `${url}/v1`, apiKey: "key", maxRetries: 0 }) };
  }

  /** Parts of a message. Arrays are the colours of an image. */
  async function content(...parts: readonly (string | Colours)[]) {
    return await Promise.all(
      parts.map(async (part) =>
        typeof part === "string"
          ? ({ type: "text", text: part } as const)
          : ({ type: "image_url", image_url: { url: dataUrl(await picture(part)) } } as const),
      ),
    );
  }

  async function ask(openai: OpenAI, ...parts: readonly (string | Colours)[]) {
    const chat = await openai.chat.completions.create({
      model: "colours",
      messages: [{ role: "user", content: await content(...parts) }],
      logprobs: true,
    });
    return chat;
  }

  it("an answer depends on the image, and is that of the three graphs run by hand", async () => {
    const { openai } = shared;
    const mixed = [RED, BLUE, BLUE, GREEN];
    const cases: readonly (readonly (string | Colours)[])[] = [
      [RED, "What colour?"],
      ["Look: ", GREEN, " and?"],
      [BLUE],
      [mixed, "Most of it?"],
      // Several images, whose order matters because attention depends on the place.
      ["First ", RED, " then ", BLUE, " which?"],
      ["First ", BLUE, " then ", RED, " which?"],
      ["No image."],
    ];
    // All at once: chats with and without images share the runs of the decoder.
    const chats = await Promise.all(cases.map((parts) => ask(openai, ...parts)));
    const expected = await Promise.all(
      cases.map((parts) => {
        const images = parts.map((part): PromptPart => (typeof part === "string" ? part : { image: part }));
        return referenceTokens(directory, ["user: ", ...images, "\nassistant:"], 9);
      }),
    );
    const texts = chats.map(({ choices }) => choices[0]!.message.content);
    expect(texts.slice(0, 3)).toEqual([
      " The colour is red.",
      " The colour is green.",
      " The colour is blue.",
    ]);
    expect(texts.at(-1)).toBe(" The colour is unknown.");
    for (const [i, { choices }] of chats.entries()) {
      const tokens = choices[0]!.logprobs!.content!.filter(({ token }) => token !== "<end>");
      expect(tokens.map(({ token }) => token)).toEqual(expected[i]!.map(({ token }) => token));
      for (const [j, { logprob }] of tokens.entries()) {
        expect(logprob).toBeCloseTo(expected[i]![j]!.logprob, 4);
      }
    }
    const logprobOf = (i: number) => chats[i]!.choices[0]!.logprobs!.content![3]!.logprob;
    expect(Math.abs(logprobOf(4) - logprobOf(5))).toBeGreaterThan(0.001);
    // Four places for each image, as vLLM counts them.
    expect(chats[2]!.usage!.prompt_tokens).toBe("user: ".length + 4 + "\n".length + 1);
  });

  it("prefixes are shared by chats with the same image, and never by those with another one", async () => {
    const { openai } = shared;
    const question = "What colour has this image, which is the beginning of a chat?";
    for (const [colour, name] of [
      [RED, "red"],
      [GREEN, "green"],
      [RED, "red"],
    ] as const) {
      const first = await ask(openai, colour, question);
      expect(first.choices[0]!.message.content).toBe(` The colour is ${name}.`);
      const again = await openai.chat.completions.create({
        model: "colours",
        messages: [
          { role: "user", content: await content(colour, question) },
          { role: "assistant", content: first.choices[0]!.message.content },
          { role: "user", content: "Again?" },
        ],
      });
      expect(again.choices[0]!.message.content).toBe(` The colour is ${name}.`);
    }
  });

  it("images of the Responses API are seen", async () => {
    const { openai } = shared;
    const response = await openai.responses.create({
      model: "colours",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is it?" },
            { type: "input_image", image_url: dataUrl(await picture(BLUE)), detail: "auto" },
          ],
        },
      ],
    });
    expect(response.output_text).toBe(" The colour is blue.");
  });

  it("files that are not images, or not what the model takes, are refused by what they are", async () => {
    const { url, triton } = shared;
    const stories = triton.bind({
      modelName: "stories",
      inferFunc: textGeneration({ directory: STORIES, intraOpNumThreads: 1 }),
    });
    await stories.ready();
    const canvas = (width: number, height: number) =>
      sharp({ create: { width, height, channels: 3, background: "red" } });
    const animation = await sharp(
      [await canvas(8, 8).png().toBuffer(), await canvas(8, 8).negate().png().toBuffer()],
      { join: { animated: true } },
    )
      .gif()
      .toBuffer();
    const huge = Buffer.alloc(54);
    huge.write("BM");
    for (const [offset, value] of [
      [10, 54],
      [14, 40],
      [18, 9000],
      [22, 9000],
      [26, 1 + (24 << 16)],
    ] as const) {
      huge.writeUInt32LE(value, offset);
    }
    const send = async (address: unknown, model = "colours") => {
      const part = { type: "image_url", image_url: { url: address } };
      const messages = [{ role: "user", content: [{ type: "text", text: "?" }, part] }];
      const response = await post(`${url}/v1/chat/completions`, { model, messages });
      const { error } = (await response.json()) as { error?: { message: string } };
      return `${response.status} ${error?.message ?? ""}`;
    };
    const place = "'messages\\[0\\].content\\[1\\]";
    const file = (bytes: Uint8Array | string) => dataUrl(Buffer.from(bytes as string));
    const refused: readonly (readonly [unknown, string])[] = [
      [file(""), "expected an image .*got 0 bytes of something else"],
      [file("hello, this is text"), "got 19 bytes of something else"],
      [file('<svg xmlns="http://www.w3.org/2000/svg"/>'), "bytes of something else"],
      [file(animation), "expected a single image, got an animation or pages: 2 images"],
      [file((await picture(RED)).subarray(0, 60)), "cannot decode the png image"],
      [file(huge), "expected an image of at most 50000000 pixels"],
      ["data:image/png,raw", "expected a data: URL with base64"],
      ["https://example.com/a.png", "fetches no images: openai\\(\\{ imageUrls"],
      ["file:///etc/passwd", "expected a data: URL"],
      [undefined, "image_url.url"],
    ];
    for (const [address, message] of refused) {
      const answer = await send(address);
      expect(answer, String(address).slice(0, 60)).toMatch(new RegExp(`^400 .*${message}`));
      expect(answer).toMatch(new RegExp(place));
    }
    expect(await send(file(await picture(RED)), "stories")).toMatch(
      /^400 .*messages\[0\].content\[1\]': expected text, got .*'stories' takes only text/,
    );
    // Photographs for print have four channels of ink.
    const cmyk = await canvas(40, 40).toColourspace("cmyk").jpeg().toBuffer();
    expect(await send(dataUrl(cmyk, "image/jpeg"))).toBe("200 ");
    const many = Array.from({ length: 17 }, () => RED);
    const response = await post(`${url}/v1/chat/completions`, {
      model: "colours",
      messages: [{ role: "user", content: await content(...many) }],
    });
    expect(await response.text()).toContain("at most 16 images in a request, got 17");
    // The text of a user has no places for images that are not there.
    const inText = await post(`${url}/v1/chat/completions`, {
      model: "colours",
      messages: [{ role: "user", content: "<image>" }],
    });
    expect(await inText.text()).toContain("expected 0 places for images");
  });

  it("images are fetched only from hosts that an option names", async () => {
    const image = await picture(GREEN);
    const answers: Readonly<Record<string, RequestListener>> = {
      "/green.png": (_, response) => response.end(image),
      "/moved.png": (_, response) => response.writeHead(302, { location: "/green.png" }).end(),
      "/large.png": (_, response) => response.end(Buffer.alloc(5000)),
      "/missing.png": (_, response) => response.writeHead(404).end(),
      "/gone.png": (request) => request.socket.destroy(),
    };
    const asked: string[] = [];
    const server = createServer((request, response) => {
      asked.push(request.url!);
      answers[request.url!]!(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
      const { openai } = await serve({ imageUrls: { hosts: [host], maxBytes: 4000 } });
      const see = (address: string) =>
        openai.chat.completions
          .create({
            model: "colours",
            messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: address } }] }],
          })
          .then(
            ({ choices }) => choices[0]!.message.content,
            (error: Error) => error.message,
          );
      expect(await see(`http://${host}/green.png`)).toBe(" The colour is green.");
      expect(await see(`http://${host}/moved.png`)).toMatch(/400 .*expected an image from/);
      expect(await see(`http://${host}/large.png`)).toMatch(/400 .*images of at most 4000 bytes/);
      expect(await see(`http://${host}/missing.png`)).toMatch(/400 .*status 404/);
      expect(await see(`http://${host}/gone.png`)).toMatch(/400 .*expected an image from/);
      for (const other of [
        `http://user@${host}1/a`,
        "http://169.254.169.254/latest",
        `http://localhost/${host}`,
      ]) {
        expect(await see(other)).toContain(`fetches images only from ${host}`);
      }
      expect(asked).toEqual(["/green.png", "/moved.png", "/large.png", "/missing.png", "/gone.png"]);
      asked.length = 0;
      const url = `http://${host}/green.png`;
      const parts = Array.from({ length: 101 }, () => ({ type: "image_url", image_url: { url } }) as const);
      const many = openai.chat.completions.create({
        model: "colours",
        messages: [{ role: "user", content: parts }],
      });
      await expect(many).rejects.toThrow("content[100]': expected at most 100 addresses of images");
    } finally {
      server.close();
    }
  });

  it("a model of vLLM's backend gets images in base64 beside its prompt", async () => {
    const triton = newTriton();
    const prompts: unknown[] = [];
    triton.bind({
      modelName: "vllm",
      inputs: [
        { name: "text_input", dtype: "BYTES", shape: [1] },
        { name: "image", dtype: "BYTES", shape: [-1], optional: true },
      ],
      outputs: [{ name: "text_output", dtype: "BYTES", shape: [1] }],
      config: { batching: false, decoupled: true },
      inferFunc: async function* (
        requests: readonly { inputs: Record<string, { text(i: number): string }> }[],
      ) {
        const { text_input, image } = requests[0]!.inputs;
        prompts.push(text_input!.text(0), image?.text(0));
        yield [{ text_output: ["seen"] }];
      } as never,
    });
    const url = await serveOpenAi(triton, { chatTemplates: { vllm: directory } });
    const image = await picture(RED);
    const response = await post(`${url}/v1/chat/completions`, {
      model: "vllm",
      messages: [{ role: "user", content: await content("Look: ", RED) }],
    });
    expect(await response.json()).toMatchObject({ choices: [{ message: { content: "seen" } }] });
    expect(prompts).toEqual(["user: Look: <image>\nassistant:", image.toString("base64")]);
  });

  it("a generator of one's own gets the parts of messages as they are", async () => {
    const triton = newTriton();
    const got: unknown[] = [];
    bindText(triton, "own", (asked) => {
      got.push(asked.messages);
      return say("seen");
    });
    const url = await serveOpenAi(triton);
    const messages = [
      { role: "user", content: [{ type: "image_url", image_url: { url: "https://example.com/a.png" } }] },
    ];
    expect((await post(`${url}/v1/chat/completions`, { model: "own", messages })).status).toBe(200);
    expect(got).toEqual([messages]);
  });
});

describe("reasoning in chats", () => {
  const TEMPLATES = {
    /** The prompt ends within the reasoning, as for Qwen 3 Thinking. */
    thinks:
      "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}<tool_call>{% endif %}" +
      "{% if add_generation_prompt %}<think>\n{% endif %}",
    /** The model begins the reasoning itself, as for Qwen 3. */
    may: "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}<think></think>\n<|im|>",
    channels: "{% for m in messages %}<|channel|>functions.x{{ m.content }}{% endfor %}",
    command: "{% for m in messages %}<|START_THINKING|>{{ m.content }}{% endfor %}",
  };

  const directories: Record<string, string> = {};

  let root = "";

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "reasoning-"));
    for (const [name, chat_template] of Object.entries(TEMPLATES)) {
      directories[name] = await mkdtemp(join(root, name));
      await writeFile(join(directories[name], "tokenizer_config.json"), JSON.stringify({ chat_template }));
    }
  });

  afterAll(() => rm(root, { recursive: true }));

  const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object" } } }];

  async function serve(
    template: keyof typeof TEMPLATES,
    answer: () => Generator<Said>,
    options: OpenAiOptions = {},
  ) {
    const triton = newTriton();
    const asked: Asked[] = [];
    const inputs = ["text_input", "sampling_parameters", "stream"];
    const record = (one: Asked) => {
      asked.push(one);
      return answer();
    };
    bindText(triton, "m", record, inputs);
    const url = await serveOpenAi(triton, { chatTemplates: { m: directories[template]! }, ...options });
    const body = { model: "m", messages: [{ role: "user", content: "Hello" }] };
    return {
      asked,
      chat: (fields: object) => post(`${url}/v1/chat/completions`, { ...body, ...fields }),
      respond: (fields: object) => post(`${url}/v1/responses`, { model: "m", input: "Hello", ...fields }),
    };
  }

  async function messageOf(response: Response): Promise<object> {
    return ((await response.json()) as { choices: [{ message: object }] }).choices[0].message;
  }

  const thinking = () => say("I th", "ink.\n</th", "ink>\n\nHel", "lo");

  it("puts reasoning that the prompt began into reasoning_content, whole and streamed", async () => {
    const { chat } = await serve("thinks", thinking);
    const message = await messageOf(await chat({}));
    expect(message).toMatchObject({ reasoning_content: "I think.", content: "Hello" });
    const events = await eventsOf(await chat({ stream: true }));
    const deltas = events.flatMap(
      (event) => event.choices?.map((choice: { delta: object }) => choice.delta) ?? [],
    );
    expect(deltas.filter((delta) => delta.content !== "" && Object.keys(delta).length > 0)).toEqual([
      { reasoning_content: "I th" },
      { reasoning_content: "ink." },
      { content: "Hel" },
      { content: "lo" },
    ]);
  });

  it("finds reasoning that the model begins itself, and takes any other text as content", async () => {
    const began = await serve("may", () => say("<thi", "nk>\nI think.</think>Hello"));
    expect(await messageOf(await began.chat({}))).toMatchObject({
      reasoning_content: "I think.",
      content: "Hello",
    });
    const plain = await serve("may", () => say("Hello <think> x"));
    const message = await messageOf(await plain.chat({}));
    expect(message).toMatchObject({ content: "Hello <think> x" });
    expect(message).not.toHaveProperty("reasoning_content");
  });

  it("finds calls after the reasoning, and none within it", async () => {
    const call = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>';
    const { chat } = await serve("thinks", () => say(`Should I ${call}?</think>${call}`));
    expect(await (await chat({ tools })).json()).toMatchObject({
      choices: [
        {
          finish_reason: "tool_calls",
          message: {
            reasoning_content: `Should I ${call}?`,
            content: null,
            tool_calls: [{ function: { name: "weather", arguments: "{}" } }],
          },
        },
      ],
    });
  });

  it("reads the channels of harmony, with and without tools", async () => {
    const text =
      "<|channel|>analysis<|message|>I think.<|end|><|start|>assistant<|channel|>final<|message|>Hello<|return|>";
    const { chat, asked } = await serve("channels", () => say(...text.match(/.{1,7}/gs)!));
    const expected = { reasoning_content: "I think.", content: "Hello" };
    expect(await messageOf(await chat({}))).toMatchObject(expected);
    expect(asked[0]!.sampling).toMatchObject({ skip_special_tokens: false });
    expect(await messageOf(await chat({ tools }))).toMatchObject(expected);
  });

  it("leaves out the marks around the answer", async () => {
    const text = "<|START_THINKING|>I think.<|END_THINKING|><|START_RESPONSE|>Hello<|END_RESPONSE|>";
    const { chat } = await serve("command", () => say(...text.match(/.{1,5}/gs)!));
    expect(await messageOf(await chat({}))).toMatchObject({
      reasoning_content: "I think.",
      content: "Hello",
    });
  });

  it("leaves reasoning in the content by option, and drops it if the client wants none", async () => {
    const { chat } = await serve("thinks", thinking, { reasoningContent: false });
    expect(await messageOf(await chat({}))).toMatchObject({ content: "I think.\n</think>\n\nHello" });
    const separate = await serve("thinks", thinking);
    const message = await messageOf(await separate.chat({ include_reasoning: false }));
    expect(message).toMatchObject({ content: "Hello" });
    expect(message).not.toHaveProperty("reasoning_content");
  });

  it("takes a text of a given structure as content, even if the prompt began reasoning", async () => {
    const { chat } = await serve("thinks", () => say('{"a": 1}'));
    const response_format = { type: "json_object" };
    expect(await messageOf(await chat({ response_format }))).toMatchObject({ content: '{"a": 1}' });
  });

  it("makes reasoning an item of its own in responses", async () => {
    const { respond } = await serve("thinks", thinking);
    expect(await (await respond({})).json()).toMatchObject({
      output: [
        { type: "reasoning", content: [{ type: "reasoning_text", text: "I think." }] },
        { type: "message", content: [{ text: "Hello" }] },
      ],
    });
    const events = await eventsOf(await respond({ stream: true }));
    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.reasoning_text.delta",
      "response.reasoning_text.delta",
      "response.reasoning_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(events.at(-1).response.output).toMatchObject([{ type: "reasoning" }, { type: "message" }]);
  });
});
