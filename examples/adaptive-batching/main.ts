import { batch, Triton, TritonError } from "@tritonjs/core";
import { deadlines } from "@tritonjs/scheduling";
import { VirtualClock } from "@tritonjs/testing";

/*
 * The batches of this model take 10 ms and 1 ms a row. Answers are wanted within 50 ms, and the load rises beyond the
 * capacity of the model. Only the target is configured. Batches grow with the load, and requests that would be late are
 * refused at once, with a time to retry after.
 *
 *   npm start
 *
 * The example runs under a virtual clock, so it ends at once and prints the same each time. Without `clock` it uses
 * real time.
 */

const FIXED_MS = 10;
const PER_ROW_MS = 1;
const TARGET_MS = 50;
const SECONDS = 4;

const clock = new VirtualClock();
await using triton = new Triton({ clock });
const batches: number[] = [];
const model = triton.bind({
  modelName: "ranker",
  inputs: [{ name: "x", dtype: "FP32", shape: [1] }],
  outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
  inferFunc: batch(async ({ x }) => {
    const rows = x.shape[0]!;
    batches.push(rows);
    await new Promise<void>((done) => clock.setTimer(FIXED_MS + PER_ROW_MS * rows, done));
    return { y: x };
  }),
  config: { maxBatchSize: 64, batcher: deadlines({ targetLatencyMs: TARGET_MS }) },
});
await model.ready();

/** Sends requests at an even rate for some seconds, and prints the outcome. */
async function load(requestsPerSecond: number): Promise<void> {
  const latencies: number[] = [];
  const comeAgain: number[] = [];
  const failed = (error: unknown): void => {
    if (!TritonError.is(error) || error.retryAfterMs === undefined) throw error;
    comeAgain.push(error.retryAfterMs);
  };
  batches.length = 0;
  const sent: Promise<void>[] = [];
  for (let i = 0; i < requestsPerSecond * SECONDS; i++) {
    const start = clock.now();
    sent.push(model.inferSample({ x: [i] }).then(() => void latencies.push(clock.now() - start), failed));
    await clock.advance(1000 / requestsPerSecond);
  }
  await clock.advance(1000);
  await Promise.all(sent);
  const inTime = latencies.filter((ms) => ms <= TARGET_MS).length;
  const rows = latencies.length / batches.length;
  const refused =
    comeAgain.length === 0
      ? "none refused"
      : `${comeAgain.length} refused, to come again in ${Math.min(...comeAgain)} to ${Math.max(...comeAgain)} ms`;
  console.log(
    `${requestsPerSecond}/s: ${latencies.length} answered, ${inTime} of them in time, ` +
      `in ${batches.length} batches of ${rows.toFixed(1)} rows; ${refused}`,
  );
}

for (const requestsPerSecond of [20, 100, 400, 800, 1600]) await load(requestsPerSecond);

/** Sends a request and retries it when told to. Returns the number of the answered attempt. */
async function patiently(x: number): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    try {
      await model.inferSample({ x: [x] });
      return attempt;
    } catch (error) {
      if (!TritonError.is(error) || error.retryAfterMs === undefined) throw error;
      const { retryAfterMs } = error;
      await new Promise<void>((resume) => clock.setTimer(retryAfterMs, resume));
    }
  }
}

const clients = Array.from({ length: 100 }, (_, i) => patiently(i));
await clock.advance(2000);
const attempts = await Promise.all(clients);
const first = attempts.filter((attempt) => attempt === 1).length;
console.log(`100 at once: ${first} answered at the first attempt, ${attempts.length} in the end`);

// The measured durations that the batcher has learnt from.
const durations = model.statistics().batchStats.map(({ batchSize, computeInfer: { count, ns } }) => {
  return `${(ns / count / 1e6).toFixed(1)} ms for ${batchSize}`;
});
console.log(`batches took ${durations[0]} row, ${durations.at(-1)} rows`);
