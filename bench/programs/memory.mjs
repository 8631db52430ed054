/* Measures the memory in use after many requests in process, of several kinds. */
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const { tree } = programOptions();
const { batch, sample, Triton } = await importOf(tree, "core");

const CONCURRENCY = 64;
const triton = new Triton();
const io = (name) => [{ name, dtype: "FP32", shape: [16] }];
const bind = (modelName, inferFunc, config) =>
  triton.bind({ modelName, inputs: io("x"), outputs: io("y"), inferFunc, config });

let release = () => {};
const identity = batch(({ x }) => ({ y: x }));
const models = {
  batch: bind("batch", identity, { maxBatchSize: 64 }),
  sample: bind(
    "sample",
    sample(({ x }) => ({ y: x })),
  ),
  fails: bind(
    "fails",
    batch(() => Promise.reject(new Error("no"))),
    { maxBatchSize: 64 },
  ),
  stream: bind(
    "stream",
    sample(async function* ({ x }) {
      yield { y: x };
      yield { y: x };
    }),
  ),
  waits: bind(
    "waits",
    batch(async ({ x }) => {
      await new Promise((resolve) => (release = resolve));
      return { y: x };
    }),
    { maxBatchSize: 64 },
  ),
};
await triton.ready();

const x = new Float32Array(16);
const ignore = () => {};
const kinds = {
  batch: () => models.batch.inferSample({ x }),
  sample: () => models.sample.infer({ x }),
  "with a signal": () => models.batch.inferSample({ x }, { signal: new AbortController().signal }),
  "with a timeout": () => models.batch.inferSample({ x }, { timeoutMs: 1e6 }),
  cancelled: () => {
    const controller = new AbortController();
    const answer = models.batch.inferSample({ x }, { signal: controller.signal }).catch(ignore);
    controller.abort();
    return answer;
  },
  failed: () => models.fails.inferSample({ x }).catch(ignore),
  refused: () => models.batch.inferSample({ x: [1, 2] }).catch(ignore),
  stream: async () => {
    for await (const _ of models.stream.stream({ x }));
  },
};

async function run(kind, requests) {
  let left = requests;
  const client = async () => {
    while (left-- > 0) await kinds[kind]();
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
}

/** Queues requests behind a busy model, and keeps them queued until `release`. */
let queued = [];
const queue = async (requests) => {
  queued = Array.from({ length: requests }, () => models.waits.inferSample({ x }));
  await new Promise((resolve) => setImmediate(resolve));
};
const drain = async () => {
  let open = true;
  const all = Promise.all(queued).then(() => (open = false));
  while (open) {
    release();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await all;
  queued = [];
};

answerCalls({ kinds: () => Object.keys(kinds), run, queue, drain });
