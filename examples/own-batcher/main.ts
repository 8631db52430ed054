import { batch, Triton, TritonError } from "@tritonjs/core";
import { newestFirst } from "./newest-first.js";

/*
 * A model of prices with a batcher of its own: the newest question runs first.
 *
 *   npm start
 */

await using triton = new Triton();
let busy: (() => void) | undefined;
const prices = triton.bind({
  modelName: "prices",
  inputs: [{ name: "tick", dtype: "INT32", shape: [1] }],
  outputs: [{ name: "price", dtype: "INT32", shape: [1] }],
  inferFunc: batch(async ({ tick }) => {
    console.log(`running ${[...tick.data].join(", ")}`);
    // The first batch keeps the model busy until all other requests have arrived.
    if (tick.data[0] === 0)
      await new Promise<void>((resolve) => {
        busy = resolve;
      });
    return { price: tick.data.map((value) => 100 + value) };
  }),
  config: { maxBatchSize: 2, batcher: newestFirst({ defaultQueuePolicy: { maxQueueSize: 5 } }) },
});
await prices.ready();

const ask = (tick: number) =>
  prices.inferSample({ tick: [tick] }).then(
    ({ price }) => `${tick} costs ${price.get(0)}`,
    (error: unknown) => `${tick} was refused: ${TritonError.from(error).code}`,
  );

const first = ask(0);
while (busy === undefined) await new Promise((resolve) => setImmediate(resolve));
// The queue has room for five requests, so the sixth is refused.
const others = [1, 2, 3, 4, 5, 6].map((tick) => ask(tick));
await new Promise((resolve) => setImmediate(resolve));
busy();
for (const outcome of await Promise.all([first, ...others])) console.log(outcome);
