/*
 * One engine for texts in a process of its own: node-llama-cpp with a GGUF file, or this library with an ONNX graph. It
 * reads the names of cases from standard input and writes the figures of each as a line of JSON.
 *
 * node text-engine.mjs <llama.cpp | tritonjs> <file or directory> <threads> <entry of node-llama-cpp, or options as JSON>
 */
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [kind, path, threadCount, last] = process.argv.slice(2);
const threads = Number(threadCount);
const CONTEXT = 4608;

/** Streams of tokens: a function of a prompt in tokens and a number of tokens, which yields once for each. */
const engines = {
  async "llama.cpp"() {
    const { getLlama } = await import(pathToFileURL(last).href);
    const llama = await getLlama({
      gpu: false,
      build: "never",
      skipDownload: true,
      logLevel: "error",
      maxThreads: 0,
    });
    const model = await llama.loadModel({ modelPath: path });
    const contexts = new Map();
    // A context has room for all of its sequences, so each case gets one of its size.
    const contextOf = async (sequences, contextSize) => {
      const key = `${sequences} ${contextSize}`;
      if (!contexts.has(key)) {
        for (const [, { context }] of contexts) await context.dispose();
        contexts.clear();
        const context = await model.createContext({ sequences, contextSize, threads, batchSize: 512 });
        contexts.set(key, { context, free: Array.from({ length: sequences }, () => context.getSequence()) });
      }
      return contexts.get(key);
    };
    return {
      prepare: (sequences, contextSize) => contextOf(sequences, contextSize),
      async *stream(prompt, count, { free }) {
        const sequence = free.pop();
        // It waits for a lock, which running texts hold nearly all of the time.
        if (sequence.nextTokenIndex > 0) await sequence.clearHistory();
        const options = { temperature: 0, yieldEogToken: true };
        let left = count;
        for await (const _ of sequence.evaluate(prompt, options)) {
          yield;
          if (--left === 0) break;
        }
        free.push(sequence);
      },
    };
  },
  async tritonjs() {
    const { Triton } = await import("@tritonjs/core");
    const { textGeneration } = await import("@tritonjs/llm");
    const triton = new Triton();
    const options = JSON.parse(last ?? "{}");
    const inferFunc = textGeneration({ directory: path, intraOpNumThreads: threads, ...options });
    const model = triton.bind({ modelName: "llama", inferFunc });
    await model.ready();
    return {
      prepare: async () => undefined,
      async close() {
        await triton.close();
        return {};
      },
      async *stream(prompt, count) {
        const request = {
          input_ids: Int32Array.from(prompt),
          stream: [true],
          return_num_output_tokens: [true],
          sampling_parameters: [JSON.stringify({ max_tokens: count, ignore_eos: true })],
        };
        for await (const { num_output_tokens } of model.stream(request)) {
          for (let i = Number(num_output_tokens.get(0)); i > 0; i--) yield;
        }
      },
    };
  },
};

let seed = 7;
/** A prompt that no other begins like. */
function prompt(length) {
  return Array.from({ length }, () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return 300 + (seed % 31_000);
  });
}

const engine = await engines[kind]();
const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};
const percentile = (values, part) =>
  values.sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(part * values.length))];

/** Times at which the tokens of a text come. */
async function times(tokens, count, place) {
  const all = [];
  for await (const _ of engine.stream(tokens, count, place)) all.push(performance.now());
  return all;
}

/** Tokens in a second of wall time and of the processor, prompts included. */
async function rate(streams, count) {
  const place = await engine.prepare(streams, 512);
  const prompts = Array.from({ length: streams }, () => prompt(16));
  const [wall, cpu] = [performance.now(), cpuMs()];
  await Promise.all(prompts.map((one) => times(one, count, place)));
  const tokens = streams * count;
  return {
    perSecond: (1000 * tokens) / (performance.now() - wall),
    perCpuSecond: (1000 * tokens) / (cpuMs() - cpu),
  };
}

async function firstToken(length) {
  const place = await engine.prepare(1, 1024);
  const tokens = prompt(length);
  const [wall, cpu] = [performance.now(), cpuMs()];
  await times(tokens, 1, place);
  return { ms: performance.now() - wall, cpuMs: cpuMs() - cpu };
}

/**
 * Gaps between the tokens of four streams, until the first token of a long prompt that arrives beside them: in time of
 * the clock, and in time of the processor, which other programs of a shared machine do not stretch.
 */
async function gaps(length) {
  const place = await engine.prepare(5, CONTEXT);
  let isDone = false;
  let begin = 0;
  let end = 0;
  const streams = Array.from({ length: 4 }, async () => {
    const all = [];
    for await (const _ of engine.stream(prompt(16), 3000, place)) {
      all.push({ at: performance.now(), cpu: cpuMs() });
      if (all.length === 20 && begin === 0) {
        begin = performance.now();
        void times(prompt(length), 1, place).then(() => {
          end = performance.now();
          isDone = true;
        });
      }
      if (isDone) break;
    }
    return all;
  });
  const all = await Promise.all(streams);
  const gapsIn = (key) =>
    all.flatMap((one) =>
      one.slice(1).flatMap((next, i) => (one[i].at < end ? [next[key] - one[i][key]] : [])),
    );
  const [found, ofProcessor] = [gapsIn("at"), gapsIn("cpu")];
  return {
    p50: percentile(found, 0.5),
    p99: percentile(found, 0.99),
    cpuP50: percentile(ofProcessor, 0.5),
    cpuP99: percentile(ofProcessor, 0.99),
    firstMs: end - begin,
    count: found.length,
  };
}

const cases = {
  rate: (streams, count) => rate(Number(streams), Number(count)),
  first: (length) => firstToken(Number(length)),
  gaps: (length) => gaps(Number(length)),
  close: () => engine.close(),
  memory: async () => ({
    peakMiB: Number(/VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? 0) / 1024,
    nowMiB: process.memoryUsage().rss / 2 ** 20,
  }),
};

console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...values] = line.split(" ");
  console.log(JSON.stringify(await cases[name](...values)));
}
process.exit(0);
