import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { http } from "@tritonjs/http";
import { repository } from "@tritonjs/repository";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { STORIES } from "../support/stories.js";
import { StoryTeller, type Wish } from "../support/story-teller.js";
import { UncachedDecoder } from "../support/uncached-decoder.js";

describe("generated texts", () => {
  const PROMPTS = [
    "Once there was a red cat.",
    "Once",
    "Once there was a blue fox. The fox was called Zoë and lived in the café.",
    "The owl was called Max and lived in the forest. One day Max lost a drum. Max was very sad.",
    "Then a horse came",
  ];

  let oracle: UncachedDecoder;

  /** A model with the default options. */
  let shared: StoryTeller;

  beforeAll(async () => {
    oracle = await UncachedDecoder.open(STORIES);
    shared = new StoryTeller();
  });

  afterAll(async () => {
    await oracle.release();
    await shared.close();
  });

  /** The model of one test. */
  let teller: StoryTeller | undefined;

  afterEach(async () => {
    await teller?.close();
    teller = undefined;
  });

  function open(...options: ConstructorParameters<typeof StoryTeller>): StoryTeller {
    teller = new StoryTeller(...options);
    return teller;
  }

  const wish = (prompt: string, max_tokens: number): Wish => ({ prompt, sampling: { max_tokens } });

  describe("greedy text", () => {
    it("of concurrent requests is what a loop without cache and batches writes", async () => {
      const lengths = [30, 7, 40, 15, 20];
      const texts = await Promise.all(PROMPTS.map((prompt, i) => shared.text(wish(prompt, lengths[i]!))));
      for (const [i, prompt] of PROMPTS.entries()) {
        expect(texts[i]).toBe(await oracle.text(prompt, lengths[i]!));
      }
    });

    it.each([
      ["only two run together, whose prompts come in parts", { prefillTokens: 5, maxRunningRequests: 2 }],
      ["there is little space, and no cache", { kvCacheBytes: 90 * 1024, prefixCache: false }],
    ])("stays the same when %s", async (_, options) => {
      const teller = open(options);
      const wishes = [...PROMPTS, PROMPTS[0]!].map((prompt) => wish(prompt, 20));
      const texts = await Promise.all(wishes.map((one) => teller.text(one)));
      for (const [i, { prompt }] of wishes.entries()) expect(texts[i]).toBe(await oracle.text(prompt!, 20));
    });

    it("of prompts that begin alike stays the same when they take over what others computed", async () => {
      const teller = open({ prefillTokens: 16 });
      const start = "Once there was a yellow bear. The bear was called Tom and lived in the village. One day";
      const prompts = [" Tom lost", " Tom found a cake.", "", " Tom found"].map((rest) => start + rest);
      await teller.text(wish(start, 3));
      const texts = await Promise.all(prompts.map((prompt) => teller.text(wish(prompt, 15))));
      for (const [i, prompt] of prompts.entries()) expect(texts[i]).toBe(await oracle.text(prompt, 15));
    });
  });

  describe("a text", () => {
    it("is the same in pieces and as a whole, which begins with the prompt unless it is excluded", async () => {
      const [prompt] = PROMPTS as [string];
      const request = { prompt, sampling: { max_tokens: 50 } };
      const pieces = await shared.all(request);
      const text = pieces.map((piece) => piece.text).join("");
      expect(pieces.length).toBeGreaterThan(10);
      expect(pieces.slice(0, -1).every(({ finish }) => finish === "null")).toBe(true);
      const [whole, ...none] = await shared.all({
        ...request,
        stream: false,
        inputs: { exclude_input_in_output: [false] },
      });
      expect(none).toEqual([]);
      expect(whole!.text).toBe(prompt + text);
      const tokens = pieces.reduce((sum, one) => sum + one.tokens!, 0);
      expect(whole).toMatchObject({ tokens, promptTokens: pieces[0]!.promptTokens });
      expect(pieces.at(-1)!.finish).toBe(whole!.finish);
    });

    it("is the same for the same seed, whatever runs beside it", async () => {
      const sampling = { max_tokens: 30, temperature: 1.5, top_p: 0.95 };
      const seeded = (seed: number) => ({ prompt: "Once there was", sampling: { ...sampling, seed } });
      const alone = await shared.text(seeded(5));
      const others = PROMPTS.map((prompt, seed) => shared.text({ prompt, sampling: { ...sampling, seed } }));
      const [again, other] = await Promise.all([shared.text(seeded(5)), shared.text(seeded(6)), ...others]);
      expect(again).toBe(alone);
      expect(other).not.toBe(alone);
    });

    it("ends at a stop string, at its length, and where the model ends it", async () => {
      const end = async (sampling: Wish["sampling"]) => {
        const all = await shared.all({ prompt: PROMPTS[0]!, sampling: { max_tokens: 200, ...sampling } });
        return [all.map(({ text }) => text).join(""), all.at(-1)!.finish] as const;
      };
      const [whole] = await end({});
      const stop = whole.slice(9, 14);
      const at = whole.indexOf(stop);
      expect(await end({ stop })).toEqual([whole.slice(0, at), "stop"]);
      expect(await end({ stop, include_stop_str_in_output: true })).toEqual([
        whole.slice(0, at + stop.length),
        "stop",
      ]);
      expect((await end({ max_tokens: 4 }))[1]).toBe("length");
      expect(await end({})).toEqual([whole, "stop"]);
      expect((await end({ ignore_eos: true }))[1]).toBe("length");
      const [longer] = await end({ min_tokens: 150 });
      expect(longer.startsWith(whole)).toBe(true);
      expect(longer.length).toBeGreaterThan(whole.length);
    });

    it("of a chat follows the messages, in the model's template", async () => {
      const content = "Tell me a story about a blue fox.";
      const [answer] = await shared.all({
        messages: [{ role: "user", content }],
        stream: false,
        sampling: { max_tokens: 40 },
      });
      const tokens = oracle.tokenizer.encode(`<|begin|><|user|>${content}<|assistant|>`, {
        add_special_tokens: false,
      }).ids;
      const expected = await oracle.generate(tokens, 40);
      expect(answer!.text).toBe(oracle.tokenizer.decode(expected, { skip_special_tokens: true }));
      expect(answer!.promptTokens).toBe(tokens.length);
    });

    it("of a chat has the prompt that the variables of the request make", async () => {
      const messages = [{ role: "user", content: "Tell me a story." }];
      const ask = (sampling: object) =>
        shared.all({ messages, stream: false, sampling: { max_tokens: 4, ...sampling } });
      const [whole] = await ask({ chat_template_kwargs: { add_generation_prompt: false, unused: 1 } });
      const [open] = await ask({ add_generation_prompt: false });
      expect(whole!.promptTokens).toBe(open!.promptTokens! + 1);
      await expect(ask({ chat_template_kwargs: "thinking" })).rejects.toThrow(
        "sampling parameter 'chat_template_kwargs': expected an object, got \"thinking\"",
      );
    });

    it("has none of the texts that the request excludes, and only tokens that it allows", async () => {
      const prompt = PROMPTS[0]!;
      const text = (sampling: object) => shared.text({ prompt, sampling: { max_tokens: 40, ...sampling } });
      const word = (await text({})).trim().split(/\W+/)[2]!;
      const without = await text({ bad_words: [word] });
      expect(without.split(/\W+/)).not.toContain(word);
      const ids = oracle.tokenizer.encode(" cat", { add_special_tokens: false }).ids;
      const only = await text({ allowed_token_ids: ids, max_tokens: 6 });
      const letters = new Set(ids.map((id: number) => oracle.tokenizer.decode([id])).join(""));
      expect([...only].every((letter) => letters.has(letter))).toBe(true);
    });

    it("has the structure that the request asks for, beside texts without one", async () => {
      const prompt = PROMPTS[0]!;
      const sampling = { max_tokens: 400, temperature: 1, seed: 4 };
      const schema = {
        type: "object",
        properties: { name: { enum: ["Tom", "Zoë"] }, age: { type: "integer", minimum: 0, maximum: 99 } },
        required: ["name", "age"],
      };
      const response_format = { type: "json_schema", json_schema: { name: "animal", schema } };
      const [json, choice, free] = await Promise.all([
        shared.text({ prompt, sampling: { ...sampling, response_format } }),
        shared.text({ prompt, sampling: { ...sampling, structured_outputs: { choice: ["yes", "no"] } } }),
        shared.text({ prompt, sampling: { max_tokens: 20 } }),
      ]);
      expect(JSON.parse(json!)).toEqual({
        name: expect.stringMatching(/^(Tom|Zoë)$/),
        age: expect.any(Number),
      });
      expect(choice).toMatch(/^(yes|no)$/);
      expect(free).toBe(await oracle.text(prompt, 20));
    });

    it("comes with the probabilities of its tokens, the chosen one first", async () => {
      const [piece] = await shared.all({
        prompt: "Once there",
        stream: false,
        sampling: { max_tokens: 3, logprobs: 2 },
      });
      const list = piece!.logprobs as Record<
        string,
        { logprob: number; rank: number; decoded_token: string }
      >[];
      expect(list).toHaveLength(3);
      expect(
        list
          .flatMap((one) => Object.values(one).filter(({ rank }) => rank === 1))
          .map((one) => one.decoded_token)
          .join(""),
      ).toBe(piece!.text);
      for (const one of list) expect(Object.keys(one)).toHaveLength(2);
    });
  });

  describe("a model", () => {
    it("goes on with other texts when a client leaves, and shows its load on the metrics page", async () => {
      const teller = open({ maxRunningRequests: 2 });
      const long = { prompt: "Once", sampling: { max_tokens: 500, ignore_eos: true } };
      const leaving = new AbortController();
      const stays = teller.pieces(long)[Symbol.asyncIterator]();
      await stays.next();
      const leaves = teller.pieces({ ...long, signal: leaving.signal })[Symbol.asyncIterator]();
      await leaves.next();
      const waits = teller.text(wish(PROMPTS[0]!, 10));
      await expect.poll(() => teller.metric("tritonjs_generation_running")).toBe(2);
      leaving.abort();
      const rest = async () => {
        for (let next = await leaves.next(); !next.done; next = await leaves.next());
      };
      await expect(rest()).rejects.toThrow();
      expect(await waits).toBe(await oracle.text(PROMPTS[0]!, 10));
      expect(await teller.metric("tritonjs_generation_kv_cache_usage")).toBeGreaterThan(0);
      expect(await teller.metric("tritonjs_generation_token_capacity")).toBeGreaterThan(0);
      await stays.return?.(undefined);
      await expect.poll(() => teller.metric("tritonjs_generation_running")).toBe(0);
      expect(await teller.metric("tritonjs_generation_waiting")).toBe(0);
    });

    it("keeps requests in its queue while it has no room, so that limits and priorities of the queue hold", async () => {
      const teller = open(
        { maxRunningRequests: 1 },
        { batcher: { priorityLevels: 2, defaultPriorityLevel: 2 } },
      );
      const first = teller.pieces({ prompt: "Once", sampling: { max_tokens: 300, ignore_eos: true } });
      await first.next();
      const order: string[] = [];
      const send = async (name: string, priority: number) => {
        await teller.text({ ...wish("Once", 2), priority });
        order.push(name);
      };
      const sent = [send("low", 2), send("high", 1)];
      await first.return(undefined);
      await Promise.all(sent);
      expect(order).toEqual(["high", "low"]);
    });
  });
});

describe("text generation in a repository", () => {
  let triton: Triton;

  let folder: string | undefined;

  afterEach(async () => {
    await triton.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  /** Serves a repository with the model in it. */
  async function serve(config: string, layout: "flat" | "onnx" = "flat"): Promise<string> {
    folder = mkdtempSync(join(tmpdir(), "repository-"));
    const version = join(folder, "stories", "1");
    cpSync(STORIES, version, { recursive: true });
    if (layout === "onnx") {
      mkdirSync(join(version, "onnx"));
      cpSync(join(version, "model.onnx"), join(version, "onnx", "model.onnx"));
      rmSync(join(version, "model.onnx"));
    }
    writeFileSync(join(folder, "stories", "config.pbtxt"), config);
    triton = new Triton({ extensions: [repository({ modelRepository: folder })] });
    const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
    return `${addresses.http!.url}/v2/models/stories`;
  }

  async function generate(url: string, body: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(`${url}/generate`, { method: "POST", body: JSON.stringify(body) });
    return { status: response.status, ...((await response.json()) as Record<string, unknown>) };
  }

  it("a model of a repository answers generate and generate_stream, with parameters of the request", async () => {
    const url = await serve('backend: "text_generation"');
    const config = (await (await fetch(`${url}/config`)).json()) as Record<string, unknown>;
    expect(config).toMatchObject({
      backend: "text_generation",
      max_batch_size: 0,
      model_transaction_policy: { decoupled: true },
    });
    const prompt = { text_input: "Once there was a red cat.", max_tokens: 20 };
    const whole = await generate(url, prompt);
    expect(whole.status).toBe(200);
    expect(whole.text_output).toMatch(/^Once there was a red cat\..{10}/);
    const response = await fetch(`${url}/generate_stream`, {
      method: "POST",
      body: JSON.stringify({ ...prompt, stream: true }),
    });
    const events = (await response.text()).split("\n\n").filter((event) => event !== "");
    const pieces = events.map((event) => JSON.parse(event.replace("data: ", "")).text_output);
    expect(prompt.text_input + pieces.join("")).toBe(whole.text_output);
    expect(pieces.length).toBeGreaterThan(5);
    expect(await generate(url, { ...prompt, max_tokens: -1 })).toMatchObject({
      status: 400,
      error: "sampling parameter 'max_tokens': expected an integer of at least 0, got -1",
    });
  });

  it("its configuration sets the limits, and the graph may be in the folder onnx", async () => {
    const url = await serve(
      `backend: "text_generation"
     parameters { key: "context_length" value { string_value: "30" } }
     parameters { key: "prefix_cache" value { string_value: "false" } }`,
      "onnx",
    );
    const answer = await generate(url, {
      text_input: "Once",
      return_num_output_tokens: true,
      ignore_eos: true,
    });
    expect(answer).toMatchObject({ status: 200, num_output_tokens: 28 });
  });

  it("a parameter keeps prefixes on disk for a model", async () => {
    const prefixes = mkdtempSync(join(tmpdir(), "prefixes-"));
    try {
      const url = await serve(
        `backend: "text_generation" parameters { key: "prefix_directory" value { string_value: "${prefixes}" } }`,
      );
      const prompt = "Once there was a red dog who lived in a big house with Tom and Mia. ".repeat(4);
      expect(await generate(url, { text_input: prompt, max_tokens: 2 })).toMatchObject({ status: 200 });
      await triton.close();
      expect(readdirSync(prefixes).length).toBeGreaterThan(1);
    } finally {
      rmSync(prefixes, { recursive: true, force: true });
    }
  });

  it.each([
    [
      'parameters { key: "kv_cache_bytes" value { string_value: "much" } }',
      "expected an integer of at least 1, got 'much'",
    ],
    ['parameters { key: "prefix_cache" value { string_value: "1" } }', "expected 'true' or 'false', got '1'"],
    [
      'parameters { key: "prefix_directory" value { string_value: "prefixes" } }',
      "expected an absolute path, got 'prefixes'",
    ],
    ["max_batch_size: 8", "expected max_batch_size 0"],
  ])("a configuration with %s is refused", async (line, text) => {
    folder = mkdtempSync(join(tmpdir(), "repository-"));
    cpSync(STORIES, join(folder, "stories", "1"), { recursive: true });
    writeFileSync(join(folder, "stories", "config.pbtxt"), `backend: "text_generation"\n${line}`);
    triton = new Triton({ extensions: [repository({ modelRepository: folder })] });
    await expect(triton.serve({ frontends: [http({ port: 0 })] })).rejects.toThrow(text);
  });
});

describe("the reference of transformers.js", () => {
  interface Recorded {
    readonly text_input?: string;
    readonly messages?: unknown;
    readonly prompt: readonly number[];
    readonly tokens: readonly number[];
    readonly text: string;
  }

  const recorded: { maxTokens: number; texts: readonly Recorded[] } = JSON.parse(
    readFileSync(new URL("../fixtures/transformers-texts.json", import.meta.url), "utf8"),
  );

  let teller: StoryTeller;

  beforeAll(() => {
    teller = new StoryTeller();
  });

  afterAll(() => teller.close());

  it("texts of concurrent requests are token for token what transformers.js recorded on the same files", async () => {
    const pieces = await Promise.all(
      recorded.texts.map(({ text_input, messages }) =>
        teller.all({
          ...(text_input === undefined ? { messages } : { prompt: text_input }),
          stream: false,
          sampling: { max_tokens: recorded.maxTokens, logprobs: 0 },
        }),
      ),
    );
    for (const [i, { prompt, tokens, text }] of recorded.texts.entries()) {
      const [piece] = pieces[i]!;
      expect(piece!.text).toBe(text);
      expect(piece!.promptTokens).toBe(prompt.length);
      const chosen = (piece!.logprobs as Record<string, unknown>[]).map((token) =>
        Number(Object.keys(token)[0]),
      );
      expect(chosen).toEqual(tokens);
    }
  });
});
