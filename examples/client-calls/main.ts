import { createClient, isTimeout } from "@tritonjs/client/http";
import { batch, sample, Triton, TritonError } from "@tritonjs/core";
import { http } from "@tritonjs/http";

/*
 * Calls of a client: results whose types the compiler knows, retries, and time limits.
 *
 *   npm start
 */

await using triton = new Triton();
let attempts = 0;
let stopped = () => {};
const hasStopped = new Promise<void>((resolve) => {
  stopped = resolve;
});
const tensors = {
  inputs: [{ name: "x", dtype: "FP32", shape: [2] }],
  outputs: [{ name: "sum", dtype: "FP32", shape: [1] }],
} as const;
const models = {
  sum: triton.bind({
    modelName: "sum",
    ...tensors,
    inferFunc: batch(({ x }) => {
      attempts++;
      if (attempts < 3) throw new TritonError("UNAVAILABLE", "not yet", { retryAfterMs: 1 });
      return { sum: Float32Array.from({ length: x.shape[0]! }, (_, row) => x.get(row, 0) + x.get(row, 1)) };
    }),
  }),
  endless: triton.bind({
    modelName: "endless",
    ...tensors,
    // The time limit of the client cancels the request, so the model learns of it.
    inferFunc: sample(async (_request, { signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      stopped();
      return { sum: [0] };
    }),
  }),
};
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
const { url } = addresses.http!;

// The types of the handles give the names of the models, and the types of arguments and results.
await using client = createClient<typeof models>(url, {
  retries: 5,
  retryDelayMs: 1,
  retryUnavailable: true,
});
const { sum } = await client.model("sum").inferSample({ x: [40, 2] });
const values: Float32Array = sum.data;
console.log(`sum: ${values[0]}, after ${attempts} attempts`);

await client
  .model("sum")
  .inferSample({ x: [1, 2, 3] })
  .catch((error: Error) => console.log(`not sent: ${error.message}`));

await client
  .model("endless")
  .inferSample({ x: [1, 2] }, { timeoutMs: 500 })
  .catch((error: TritonError) => console.log(`${error.code}, a timeout: ${isTimeout(error)}`));
await hasStopped;
console.log("the model was told to stop");
