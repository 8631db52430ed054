import { readFileSync } from "node:fs";
import { batch, sample, Triton } from "@tritonjs/core";
import OpenAI, { BadRequestError, NotFoundError, toFile } from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { outcomeOf, thrownBy } from "../../../../../test/support/outcome.js";
import { type EmbeddingCallback, textEmbedder } from "../../../src/index.js";
import { newTriton, post, serveOpenAi } from "../support/openai-server.js";

/** Embeds a text as its length, and 1. */
function bindBatched(triton: Triton, sizes: number[]): void {
  triton.bind({
    modelName: "texts",
    inputs: [{ name: "query", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
    config: { maxBatchSize: 4 },
    inferFunc: batch(({ query }) => {
      const texts = query.strings();
      sizes.push(texts.length);
      return { embedding: texts.map((text) => [text.length, 1]) };
    }),
  });
}

async function serve() {
  const triton = newTriton();
  const sizes: number[] = [];
  bindBatched(triton, sizes);
  triton.bind({
    modelName: "tokens",
    inputs: [
      { name: "input_ids", dtype: "INT64", shape: [-1] },
      { name: "attention_mask", dtype: "INT64", shape: [-1] },
    ],
    outputs: [{ name: "vector", dtype: "FP32", shape: [2] }],
    config: { batching: false },
    inferFunc: sample(({ input_ids, attention_mask }) => {
      const masked = attention_mask.data.reduce((sum, value) => sum + value, 0n);
      return { vector: [input_ids.size, Number(masked)] };
    }),
  });
  triton.bind({
    modelName: "vllm",
    inputs: [{ name: "embedding_request", dtype: "BYTES", shape: [1], optional: true }],
    outputs: [
      { name: "text_output", dtype: "BYTES", shape: [1] },
      { name: "num_input_tokens", dtype: "UINT32", shape: [1] },
    ],
    config: { batching: false },
    inferFunc: sample(({ embedding_request }) => {
      const { input, pooling_params } = JSON.parse(embedding_request!.text(0));
      const vector = [input.length, pooling_params?.dimensions[0] ?? 0];
      return { text_output: [JSON.stringify(vector)], num_input_tokens: [5] };
    }),
  });
  const url = await serveOpenAi(triton);
  const embed = (body: object) => post(`${url}/v1/embeddings`, { model: "texts", ...body });
  return { embed, sizes };
}

describe("POST /v1/embeddings", () => {
  it("answers with OpenAI's object", async () => {
    const { embed } = await serve();
    expect(await (await embed({ input: "four" })).json()).toEqual({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [4, 1] }],
      model: "texts",
      usage: null,
    });
  });

  it("fills batches of the model with a list of texts, and keeps their order", async () => {
    const { embed, sizes } = await serve();
    const answer = await (await embed({ input: ["a", "bb", "ccc", "dddd", "eeeee"] })).json();
    const { data } = answer as { data: { index: number; embedding: number[] }[] };
    expect(data.map(({ embedding }) => embedding[0])).toEqual([1, 2, 3, 4, 5]);
    expect(data.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4]);
    expect(sizes.sort()).toEqual([1, 4]);
  });

  it("writes base64 of little-endian FP32", async () => {
    const { embed } = await serve();
    const answer = await (await embed({ input: "four", encoding_format: "base64" })).json();
    const { data } = answer as { data: { embedding: string }[] };
    const bytes = Buffer.from(data[0]!.embedding, "base64");
    expect([bytes.readFloatLE(0), bytes.readFloatLE(4), bytes.length]).toEqual([4, 1, 8]);
  });

  it("cuts embeddings to dimensions, with length 1", async () => {
    const { embed } = await serve();
    expect(await (await embed({ input: "four", dimensions: 1 })).json()).toMatchObject({
      data: [{ embedding: [1] }],
    });
    const refused = await embed({ input: "four", dimensions: 3 });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ error: { param: "dimensions" } });
  });

  it("passes tokens to a model that takes them, with its mask", async () => {
    const { embed } = await serve();
    const model = "tokens";
    expect(await (await embed({ model, input: [7, 8, 9] })).json()).toMatchObject({
      data: [{ embedding: [3, 3] }],
    });
    expect(await (await embed({ model, input: [[7], [8, 9]] })).json()).toMatchObject({
      data: [{ embedding: [1, 1] }, { embedding: [2, 2] }],
    });
  });

  it("calls a model of vLLM as it wants to be called", async () => {
    const { embed } = await serve();
    const answer = await (await embed({ model: "vllm", input: ["four", [1, 2, 3]], dimensions: 64 })).json();
    expect(answer).toMatchObject({
      data: [{ embedding: [4, 64] }, { embedding: [3, 64] }],
      usage: { prompt_tokens: 10, total_tokens: 10 },
    });
  });

  it.each([
    ["texts", [1, 2], "unsupported_value"],
    ["tokens", "text", "unsupported_value"],
    ["texts", [], "empty_array"],
    ["texts", "", "invalid_value"],
    ["texts", [[]], "empty_array"],
    ["texts", [1.5], "invalid_type"],
    ["texts", 7, "invalid_type"],
    ["texts", undefined, "missing_required_parameter"],
  ])("refuses for model %s the input %j", async (model, input, code) => {
    const { embed } = await serve();
    const response = await embed({ model, input });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "input", code } });
  });
});

describe("scores", () => {
  async function serve() {
    const triton = newTriton();
    const sizes: number[] = [];
    triton.bind({
      modelName: "pairs",
      inputs: [
        { name: "query", dtype: "BYTES", shape: [1] },
        { name: "document", dtype: "BYTES", shape: [1] },
      ],
      outputs: [{ name: "score", dtype: "FP32", shape: [1] }],
      config: { maxBatchSize: 2 },
      // Letters that both texts have.
      inferFunc: batch(({ query, document }) => {
        const queries = query.strings();
        sizes.push(queries.length);
        const shared = (a: string, b: string) => [...a].filter((letter) => b.includes(letter)).length;
        return { score: document.strings().map((text, i) => [shared(queries[i]!, text)]) };
      }),
    });
    triton.bind({
      modelName: "vectors",
      inputs: [{ name: "text_input", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "embedding", dtype: "FP32", shape: [2] }],
      config: { maxBatchSize: 8 },
      inferFunc: batch(({ text_input }) => ({
        embedding: text_input
          .strings()
          .map((text) => [text.includes("a") ? 1 : 0, text.includes("b") ? 1 : 0]),
      })),
    });
    const url = await serveOpenAi(triton);
    return { sizes, send: (path: string, body: object) => post(`${url}/v1/${path}`, body) };
  }

  it("a cross-encoder ranks documents in batches, the best first", async () => {
    const { send, sizes } = await serve();
    const documents = ["xyz", { text: "abc" }, "ab"];
    expect(await (await send("rerank", { model: "pairs", query: "abc", documents })).json()).toEqual({
      id: expect.stringMatching(/^rerank-/),
      model: "pairs",
      usage: { total_tokens: null },
      results: [
        { index: 1, document: { text: "abc" }, relevance_score: 3 },
        { index: 2, document: { text: "ab" }, relevance_score: 2 },
        { index: 0, document: { text: "xyz" }, relevance_score: 0 },
      ],
    });
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(3);
    const first = { model: "pairs", query: "abc", documents, top_n: 1, return_documents: false };
    expect(await (await send("rerank", first)).json()).toMatchObject({
      results: [{ index: 1, relevance_score: 3 }],
    });
  });

  it("scores one text against several, or texts in pairs", async () => {
    const { send } = await serve();
    const scores = async (body: object) => {
      const { data } = (await (await send("score", body)).json()) as { data: { score: number }[] };
      return data.map(({ score }) => score);
    };
    expect(await scores({ model: "pairs", text_1: "ab", text_2: ["a", "x"] })).toEqual([1, 0]);
    expect(await scores({ model: "pairs", text_1: ["ab", "x"], text_2: ["ab", "x"] })).toEqual([2, 1]);
    expect(await scores({ model: "pairs", text_1: "a", text_2: "a" })).toEqual([1]);
  });

  it("an embedding model scores by the cosine of its embeddings", async () => {
    const { send } = await serve();
    const body = { model: "vectors", query: "a", documents: ["b", "a", "a b"] };
    const { results } = (await (await send("rerank", body)).json()) as {
      results: { index: number; relevance_score: number }[];
    };
    expect(results.map(({ index }) => index)).toEqual([1, 2, 0]);
    expect(results.map((one) => one.relevance_score)[1]).toBeCloseTo(Math.SQRT1_2, 5);
  });

  it.each([
    ["rerank", { model: "pairs", documents: ["a"] }, "query"],
    ["rerank", { model: "pairs", query: "a", documents: [] }, "documents"],
    ["rerank", { model: "pairs", query: "a", documents: [7] }, "documents"],
    ["score", { model: "pairs", text_1: ["a", "b"], text_2: ["a"] }, "text_2"],
    ["score", { model: "none", text_1: "a", text_2: "a" }, "model"],
  ] as const)("%s refuses %j and names the field", async (path, body, param) => {
    const { send } = await serve();
    const refused = await send(path, body);
    expect(await refused.json()).toMatchObject({ error: { param, type: "invalid_request_error" } });
  });
});

const chirp = readFileSync(new URL("../../../../backends/test/media/fixtures/chirp.wav", import.meta.url));

const BYTES = { dtype: "BYTES", shape: [1] } as const;

const words = [
  { word: "turn", start: 0.2, end: 0.4 },
  { word: "on", start: 0.44, end: 0.6 },
  { word: "now", start: 2, end: 2.32 },
];

/** A client of a server with a model that hears the same words in each file, and one that answers piece by piece. */
async function connect(partial: readonly string[] = []) {
  const triton = newTriton();
  const heard: { bytes: number; language: string | undefined }[] = [];
  triton.bind({
    modelName: "ear",
    inputs: [
      { name: "audio", ...BYTES },
      { name: "language", ...BYTES, optional: true },
    ],
    outputs: [
      { name: "TRANSCRIPTS", ...BYTES },
      { name: "WORDS", ...BYTES },
    ],
    inferFunc: batch(({ audio, language }) => {
      heard.push({ bytes: audio.get(0, 0).length, language: language?.text(0, 0) });
      return { TRANSCRIPTS: [["turn on now"]], WORDS: [[JSON.stringify(words)]] };
    }),
  });
  triton.bind({
    modelName: "live",
    inputs: [{ name: "audio", ...BYTES }],
    outputs: [{ name: "text_output", ...BYTES }],
    config: { batching: false, decoupled: true },
    inferFunc: sample(function* () {
      for (const text of partial) yield { text_output: [text] };
    }),
  });
  triton.bind({
    modelName: "sum",
    inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    inferFunc: batch(({ x }) => ({ y: [[x.get(0, 0)]] })),
  });
  const url = await serveOpenAi(triton);
  const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "key", maxRetries: 0 });
  const file = await toFile(chirp, "chirp.wav");
  return { openai, url, file, heard };
}

describe("transcriptions", () => {
  it("have the text of a file, which the model gets as it is", async () => {
    const { openai, file, heard } = await connect();
    const made = await openai.audio.transcriptions.create({ file, model: "ear", language: "en" });
    expect(made.text).toBe("turn on now");
    expect(heard).toEqual([{ bytes: chirp.length, language: "en" }]);
  });

  it("are text, subtitles, or JSON with segments and words", async () => {
    const { openai, file } = await connect();
    const create = (more: object) => openai.audio.transcriptions.create({ file, model: "ear", ...more });
    expect(await create({ response_format: "text" })).toBe("turn on now\n");
    expect(await create({ response_format: "srt" })).toBe(
      "1\n00:00:00,200 --> 00:00:00,600\nturn on\n\n2\n00:00:02,000 --> 00:00:02,320\nnow\n\n",
    );
    expect(await create({ response_format: "vtt" })).toBe(
      "WEBVTT\n\n00:00:00.200 --> 00:00:00.600\nturn on\n\n00:00:02.000 --> 00:00:02.320\nnow\n\n",
    );
    const verbose = await create({
      response_format: "verbose_json",
      timestamp_granularities: ["word", "segment"],
      temperature: 0.5,
    });
    expect(verbose).toMatchObject({
      task: "transcribe",
      duration: 0.2,
      text: "turn on now",
      segments: [
        { id: 0, start: 0.2, end: 0.6, text: "turn on", temperature: 0.5 },
        { id: 1, start: 2, end: 2.32, text: "now" },
      ],
      words,
    });
  });

  it("stream the words on which two texts in a row agree, and the whole text at the end", async () => {
    const partial = ["turn", "turn on", "turn of the", "turn off the light"];
    const { openai, file } = await connect(partial);
    const events = [];
    for await (const event of await openai.audio.transcriptions.create({
      file,
      model: "live",
      stream: true,
    })) {
      events.push(event);
    }
    expect(events).toEqual([
      { type: "transcript.text.delta", delta: "turn" },
      { type: "transcript.text.delta", delta: " off the light" },
      { type: "transcript.text.done", text: "turn off the light" },
    ]);
  });

  it("stream the text of a model that answers once", async () => {
    const { openai, file } = await connect();
    const events = [];
    for await (const event of await openai.audio.transcriptions.create({
      file,
      model: "ear",
      stream: true,
    })) {
      events.push(event);
    }
    expect(events).toEqual([
      { type: "transcript.text.delta", delta: "turn on now" },
      { type: "transcript.text.done", text: "turn on now" },
    ]);
  });

  it("are refused with the field at fault", async () => {
    const { openai, url, file } = await connect();
    const create = (more: object) => openai.audio.transcriptions.create({ file, model: "ear", ...more });
    await expect(create({ model: "none" })).rejects.toThrow(NotFoundError);
    await expect(create({ model: "sum" })).rejects.toThrow(
      "model 'sum' cannot transcribe files: expected an input of BYTES for a file, and an output of BYTES for its text, got inputs x and outputs y",
    );
    await expect(create({ response_format: "mp3" })).rejects.toThrow(
      "'response_format': expected one of json, text, srt, vtt, verbose_json, got 'mp3'",
    );
    await expect(create({ temperature: 2 })).rejects.toThrow(
      "'temperature': expected a number from 0 to 1, got '2'",
    );
    await expect(create({ timestamp_granularities: ["word"] })).rejects.toThrow(
      "'timestamp_granularities': expected the response_format verbose_json, got json",
    );
    await expect(create({ response_format: "srt", stream: true })).rejects.toThrow(BadRequestError);
    const post = async (body: RequestInit["body"], headers = {}) => {
      const response = await fetch(`${url}/v1/audio/transcriptions`, {
        method: "POST",
        body: body!,
        headers,
      });
      const { error } = (await response.json()) as { error: { message: string } };
      return { status: response.status, message: error.message };
    };
    expect(await post("{}", { "content-type": "application/json" })).toEqual({
      status: 400,
      message: "content-type: expected multipart/form-data, got application/json",
    });
    expect(await post("no parts", { "content-type": "multipart/form-data; boundary=x" })).toMatchObject({
      status: 400,
    });
    const form = new FormData();
    form.set("model", "ear");
    expect(await post(form)).toMatchObject({ status: 400, message: expect.stringContaining("'file'") });
  });
});

describe("embeddings of a model with its tokenizer", () => {
  let triton = new Triton();

  afterEach(() => triton.close());

  function bind(callback: EmbeddingCallback) {
    triton = new Triton();
    return triton.bind({
      modelName: "embed",
      inferFunc: textEmbedder(callback),
      config: { maxBatchSize: 8 },
    });
  }

  describe("a text embedder", () => {
    it("gets the texts of many requests in one batch, and answers each with its vector", async () => {
      const batches: (readonly string[])[] = [];
      const embed = bind(async (texts) => {
        batches.push(texts);
        return texts.map((text) => [text.length, 1]);
      });
      await embed.ready();
      const texts = ["a", "bcd", "Zoë"];
      const answers = await Promise.all(texts.map((text) => embed.inferSample({ text_input: [text] })));
      expect(answers.map(({ embedding }) => Array.from(embedding.data))).toEqual([
        [1, 1],
        [3, 1],
        [3, 1],
      ]);
      expect(batches).toEqual([texts]);
      const { embedding } = await embed.inferBatch({ text_input: [["x"], ["yy"]] });
      expect(embedding.shape).toEqual([2, 2]);
    });

    it.each([
      ["too few vectors", () => [], "got 0 with the lengths []"],
      ["vectors of different lengths", () => [[1], [1, 2]], "got 2 with the lengths [1, 2]"],
      ["empty vectors", () => [[], []], "got 2 with the lengths [0]"],
      ["something else", () => "vectors" as never, "got a string"],
    ])("fails its batch for %s", async (_, callback, got) => {
      const embed = bind(callback as EmbeddingCallback);
      expect(await outcomeOf(embed.inferBatch({ text_input: [["x"], ["y"]] }))).toBe(
        `INTERNAL model 'embed': textEmbedder: expected 2 vectors of one length above 0, ${got}`,
      );
    });

    it("refuses anything but a function", () => {
      expect(thrownBy(() => textEmbedder(5 as never))).toBe(
        "INVALID_ARG textEmbedder(): callback: expected a function, got number",
      );
    });
  });
});
