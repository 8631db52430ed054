/*
 * FP32[16] through a batch callback that does nothing, in process. `kind` says what runs it: "tritonjs", "dataloader"
 * with the rows as they are, "dataloader-stacked" with a matrix made of them, or "function", an awaited function.
 */
import { answerCalls, programOptions } from "../support/program.mjs";
import { importOf } from "../support/tree.mjs";

const WIDTH = 16;
const MAX_BATCH = 64;
const row = new Float32Array(WIDTH).fill(1);
const { kind, tree } = programOptions();

const makers = {
  async tritonjs() {
    const { batch, Triton } = await importOf(tree, "core");
    const triton = new Triton();
    const model = triton.bind({
      modelName: "identity",
      inputs: [{ name: "x", dtype: "FP32", shape: [WIDTH] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [WIDTH] }],
      inferFunc: batch(({ x }) => ({ y: x })),
      config: { maxBatchSize: MAX_BATCH },
    });
    await model.ready();
    return async () => (await model.inferSample({ x: row })).y.data;
  },
  async dataloader() {
    const { default: DataLoader } = await import("dataloader");
    const loader = new DataLoader(async (rows) => rows, { cache: false, maxBatchSize: MAX_BATCH });
    return () => loader.load(row);
  },
  async "dataloader-stacked"() {
    const { default: DataLoader } = await import("dataloader");
    const stacked = async (rows) => {
      const all = new Float32Array(rows.length * WIDTH);
      rows.forEach((one, i) => void all.set(one, i * WIDTH));
      return rows.map((_, i) => all.slice(i * WIDTH, (i + 1) * WIDTH));
    };
    const loader = new DataLoader(stacked, { cache: false, maxBatchSize: MAX_BATCH });
    return () => loader.load(row);
  },
  async function() {
    const work = async (one) => one;
    return () => work(row);
  },
};

const ask = await makers[kind]();

/** Keeps `concurrency` requests in flight; returns requests a second. */
async function run(concurrency, seconds) {
  const start = performance.now();
  const end = start + seconds * 1000;
  let answers = 0;
  const client = async () => {
    for (;;) {
      // Read the clock rarely: for a bare function it would be most of the work.
      for (let i = 0; i < 16; i++) {
        const answer = await ask();
        if (answer.length !== WIDTH) throw new Error("a wrong answer");
        answers++;
      }
      if (performance.now() > end) return;
    }
  };
  const cpu = process.cpuUsage();
  await Promise.all(Array.from({ length: concurrency }, client));
  const { user, system } = process.cpuUsage(cpu);
  return {
    rate: (answers * 1000) / (performance.now() - start),
    cpuMicroseconds: (user + system) / answers,
  };
}

answerCalls({ run });
