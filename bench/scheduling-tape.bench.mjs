/*
 * What a recording of the scheduling costs: processor time of a request in process, 64 at a time, of servers with and
 * without a recording, in turns.
 *
 *   node bench/scheduling-tape.bench.mjs
 */
import { batch, Triton } from "@tritonjs/core";
import { recordScheduling } from "@tritonjs/core/time-travel";

const ROUNDS = 9;
const REQUESTS = 20_000;

async function microseconds(recorded) {
  const tape = recorded ? recordScheduling() : undefined;
  const triton = new Triton(tape && { schedulingTape: tape });
  const model = triton.bind({
    modelName: "double",
    inputs: [{ name: "x", dtype: "FP32", shape: [16] }],
    outputs: [{ name: "y", dtype: "FP32", shape: [16] }],
    inferFunc: batch(({ x }) => ({ y: x })),
    config: { maxBatchSize: 64 },
  });
  await triton.ready();
  const x = new Float32Array(16);
  let left = REQUESTS;
  const client = async () => {
    while (left-- > 0) await model.inferSample({ x });
  };
  const start = process.cpuUsage();
  await Promise.all(Array.from({ length: 64 }, client));
  const { user, system } = process.cpuUsage(start);
  await triton.close();
  return { us: (user + system) / REQUESTS, bytes: (tape?.byteLength ?? 0) / REQUESTS };
}

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const [off, on] = [[], []];
let bytes = 0;
for (let round = 0; round < ROUNDS + 1; round++) {
  const [without, recorded] = [await microseconds(false), await microseconds(true)];
  bytes = recorded.bytes;
  // The first round compiles.
  if (round > 0) off.push(without.us);
  if (round > 0) on.push(recorded.us);
}
console.log(`without a recording: ${median(off).toFixed(2)} µs of CPU a request`);
console.log(`recorded:            ${median(on).toFixed(2)} µs, ${bytes.toFixed(0)} bytes a request`);
