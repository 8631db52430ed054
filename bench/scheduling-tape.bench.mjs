/*
 * What a recording of the scheduling costs: processor time of a request in process, 64 at a time, of servers without a
 * recording, with one, and with a ring of the last second, in turns.
 *
 *   node bench/scheduling-tape.bench.mjs
 */
import { batch, Triton } from "@tritonjs/core";
import { recordScheduling } from "@tritonjs/operations/time-travel";

const ROUNDS = 9;
const REQUESTS = 20_000;

async function microseconds(options) {
  const tape = options && recordScheduling(options);
  const triton = new Triton(tape && { extensions: [tape] });
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
const cases = [
  { name: "without a recording", options: undefined },
  { name: "recorded", options: {} },
  { name: "ring of a second", options: { keep: "last", seconds: 1 } },
].map((one) => ({ ...one, us: [], ratios: [], bytes: 0 }));
for (let round = 0; round < ROUNDS + 1; round++) {
  const taken = [];
  for (const one of cases) taken.push(await microseconds(one.options));
  // The first round compiles.
  if (round === 0) continue;
  for (const [i, { us, bytes }] of taken.entries()) {
    cases[i].us.push(us);
    cases[i].ratios.push(us / taken[0].us);
    cases[i].bytes = bytes;
  }
}
for (const { name, us, ratios, bytes } of cases) {
  const kept = bytes > 0 ? `, ${bytes.toFixed(0)} bytes kept a request` : "";
  console.log(
    `${name}: ${median(us).toFixed(2)} µs of CPU a request, ratio ${median(ratios).toFixed(2)}${kept}`,
  );
}
