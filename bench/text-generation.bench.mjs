/*
 * What does continuous batching bring to generated text? Streams of a small decoder together, against texts one after
 * the other: in a loop on ONNX Runtime, and with transformers.js if `TRANSFORMERS_JS` is the path of its package. With
 * `BENCH_GENERATIONS=10000` it looks for a leak instead, over that number of texts.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Triton } from "@tritonjs/core";
import { textGeneration } from "@tritonjs/llm";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { root } from "../scripts/run.mjs";
import { short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const fromPackage = createRequire(join(root, "packages", "llm", "package.json"));
const { Tokenizer } = fromPackage("@huggingface/tokenizers");

/**
 * The loop that one writes first: a text at a time, greedy, with keys and values kept between steps, on this thread.
 */
export async function naiveDecoder(directory) {
  const read = (name) => JSON.parse(readFileSync(join(directory, name), "utf8"));
  const session = await InferenceSession.create(join(directory, "model.onnx"), {
    // More threads make a small model slower.
    intraOpNumThreads: 1,
  });
  const tokenizer = new Tokenizer(read("tokenizer.json"), read("tokenizer_config.json"));
  const { num_key_value_heads: heads, head_dim: size } = read("config.json");
  const pastNames = session.inputNames.filter((name) => name.startsWith("past_key_values."));
  const integers = (values) => new Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
  const textStep = async (tokens, from, past) => {
    const outputs = await session.run({
      input_ids: integers(tokens.slice(from)),
      attention_mask: integers(tokens.map(() => 1)),
      position_ids: integers(tokens.slice(from).map((_, i) => from + i)),
      ...past,
    });
    const scores = outputs.logits.data.subarray(-outputs.logits.dims[2]);
    let best = 0;
    for (let id = 1; id < scores.length; id++) if (scores[id] > scores[best]) best = id;
    const next = pastNames.map((name) => [name, outputs[name.replace("past_key_values", "present")]]);
    return { token: best, past: Object.fromEntries(next) };
  };
  return {
    /** @returns the tokens and the milliseconds until the first */
    async generate(prompt, count) {
      const started = performance.now();
      const tokens = [...tokenizer.encode(prompt).ids];
      let past = Object.fromEntries(
        pastNames.map((name) => [name, new Tensor("float32", [], [1, heads, 0, size])]),
      );
      let from = 0;
      let firstMs;
      for (let i = 0; i < count; i++) {
        const step = await textStep(tokens, from, past);
        firstMs ??= performance.now() - started;
        past = step.past;
        from = tokens.length;
        tokens.push(step.token);
      }
      return {
        text: tokenizer.decode(tokens.slice(-count), { skip_special_tokens: true }),
        firstMs,
        ms: performance.now() - started,
      };
    },
    release: () => session.release(),
  };
}

const directory = join(root, "examples", "text-generation", "models", "stories", "1");
const TOKENS = Number(process.env.BENCH_TOKENS ?? 200);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const STREAMS = [1, 4, 16];

const animals = ["cat", "dog", "fox", "owl", "mouse", "bear", "frog", "duck"];
const colours = ["red", "blue"];
const prompts = colours.flatMap((colour) => animals.map((animal) => `Once there was a ${colour} ${animal}.`));

const triton = new Triton();
const model = triton.bind({
  modelName: "stories",
  inferFunc: textGeneration({ directory, intraOpNumThreads: 1 }),
});
await model.ready();

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const textOf = (value) => (typeof value === "string" ? value : new TextDecoder().decode(value));

/** One streamed text: its times by the definitions of AIPerf. */
async function stream(prompt, count, ignoreEos = true) {
  const started = performance.now();
  let first;
  let last;
  let tokens = 0;
  let text = "";
  const inputs = {
    text_input: [prompt],
    stream: [true],
    return_num_output_tokens: [true],
    sampling_parameters: [JSON.stringify({ max_tokens: count, ignore_eos: ignoreEos })],
  };
  for await (const { text_output, num_output_tokens } of model.stream(inputs)) {
    last = performance.now();
    first ??= last;
    tokens += Number(num_output_tokens.get(0));
    text += textOf(text_output.get(0));
  }
  const ttft = first - started;
  return { text, tokens, ttft, itl: (last - started - ttft) / (tokens - 1) };
}

async function together(streams) {
  const started = performance.now();
  const texts = await Promise.all(prompts.slice(0, streams).map((prompt) => stream(prompt, TOKENS)));
  const seconds = (performance.now() - started) / 1000;
  const rate = texts.reduce((sum, { tokens }) => sum + tokens, 0) / seconds;
  return {
    rate,
    ttft: median(texts.map((one) => one.ttft)),
    itl: median(texts.map((one) => one.itl)),
    texts,
  };
}

/** Four texts one after the other. */
async function oneByOne(generate) {
  const texts = [];
  const started = performance.now();
  for (const prompt of prompts.slice(0, 4)) texts.push(await generate(prompt, TOKENS));
  const rate = (texts.length * TOKENS * 1000) / (performance.now() - started);
  const itl = median(texts.map(({ ms, firstMs }) => (ms - firstMs) / (TOKENS - 1)));
  return { rate, ttft: median(texts.map(({ firstMs }) => firstMs)), itl, texts };
}

/** transformers.js on the same files, in the folders that it expects. */
async function transformersJs(path) {
  const folder = mkdtempSync(join(tmpdir(), "tritonjs-bench-"));
  mkdirSync(join(folder, "stories", "onnx"), { recursive: true });
  cpSync(directory, join(folder, "stories"), { recursive: true });
  cpSync(join(directory, "model.onnx"), join(folder, "stories", "onnx", "model.onnx"));
  const fromFolder = createRequire(join(path, "package.json"));
  const { env, pipeline, TextStreamer } = fromFolder("@huggingface/transformers");
  env.allowRemoteModels = false;
  env.localModelPath = `${folder}/`;
  const generator = await pipeline("text-generation", "stories", { dtype: "fp32" });
  return {
    async generate(prompt, count) {
      const started = performance.now();
      let firstMs;
      const streamer = new TextStreamer(generator.tokenizer, {
        skip_prompt: true,
        callback_function() {},
        token_callback_function: () => {
          firstMs ??= performance.now() - started;
        },
      });
      const options = { min_new_tokens: count, max_new_tokens: count, do_sample: false, streamer };
      const [{ generated_text: text }] = await generator(prompt, options);
      return { text, firstMs, ms: performance.now() - started };
    },
    async release() {
      await generator.dispose();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function compare() {
  const naive = await naiveDecoder(directory);
  const path = process.env.TRANSFORMERS_JS;
  const transformers = path === undefined ? undefined : await transformersJs(path);
  const kinds = {
    ...(transformers && { "transformers.js, one after the other": () => oneByOne(transformers.generate) }),
    "loop, one after the other": () => oneByOne(naive.generate),
    ...Object.fromEntries(
      STREAMS.map((streams) => [`${streams} stream${streams > 1 ? "s" : ""}`, () => together(streams)]),
    ),
  };
  const runs = Object.fromEntries(Object.keys(kinds).map((name) => [name, []]));
  for (const run of Object.values(kinds)) await run();
  // In turns, so that other work of the machine meets all of them.
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(kinds)) runs[name].push(await run());
  }
  const reference = runs["loop, one after the other"];
  const expected = reference[0].texts[0].text;
  if (runs["16 streams"][0].texts[0].text !== expected) throw new Error("the texts differ");
  const rows = Object.fromEntries(
    Object.entries(runs).map(([name, all]) => [
      name,
      {
        "tokens/s": Math.round(median(all.map(({ rate }) => rate))),
        "times the loop": short(median(all.map(({ rate }, i) => rate / reference[i].rate))),
        "time to first token, ms": short(median(all.map(({ ttft }) => ttft))),
        "inter-token latency, ms": short(median(all.map(({ itl }) => itl))),
      },
    ]),
  );
  await naive.release();
  await transformers?.release();
  report("text-generation", { rows, document: "text-generation-decoder.md" });
}

/** Memory after a tenth of the texts and after all of them, 16 at a time. */
async function leak(count) {
  const rows = {};
  let next = 0;
  let done = 0;
  const work = async (until) => {
    while (next < until) {
      const prompt = prompts[next++ % prompts.length];
      await stream(prompt, 16, false);
      done++;
    }
  };
  for (const part of [0.1, 0.25, 0.5, 0.75, 1]) {
    await Promise.all(prompts.map(() => work(count * part)));
    globalThis.gc?.();
    const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage();
    const mebibytes = (bytes) => Math.round(bytes / 2 ** 20);
    rows[`${done} texts`] = {
      "RSS, MiB": mebibytes(rss),
      "heap, MiB": mebibytes(heapUsed),
      "external, MiB": mebibytes(external + arrayBuffers),
    };
  }
  report("text-generation-memory", { rows, document: "text-generation-decoder.md" });
}

const generations = Number(process.env.BENCH_GENERATIONS ?? 0);
if (generations > 0) await leak(generations);
else await compare();
await triton.close();
