import { Triton } from "@tritonjs/core";
import { inputs, outputs } from "./model.js";

/*
 * A faulty model, served from child processes: a fault in one process fails only its own request.
 *
 *   npm start
 */

await using triton = new Triton();

const roots = triton.bind({
  modelName: "roots",
  inputs,
  outputs,
  inferFunc: new URL("./model.js", import.meta.url),
  config: {
    maxBatchSize: 1,
    instanceGroup: {
      count: 2,
      isolation: "process",
      executionTimeoutMs: 500,
      recycle: { afterRequests: 1000, aboveMemoryMb: 512 },
    },
  },
});
await roots.ready();

const show = async (value: number) => {
  try {
    const { y } = await roots.inferSample({ x: [value] });
    console.log(`sqrt(${value}) = ${y.get(0)}`);
  } catch (error) {
    console.log(`sqrt(${value}): ${(error as Error).message}`);
  }
};

await show(16);
await show(-1); // The process died; the next request goes to the other one.
await show(25);
await show(Number.POSITIVE_INFINITY); // Ended after half a second.
await show(36);

await roots.updateInstances(1);
await show(49);
console.log(`instances: ${roots.config().instanceGroup[0]?.count}`);
