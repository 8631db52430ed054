import { isTimeout, ModelClient } from "@tritonjs/client/http";
import { batch, sample, Triton, TritonError } from "@tritonjs/core";
import { http } from "@tritonjs/http";

/*
 * Calls of a client: results whose types the compiler knows, retries, and time limits.
 *
 *   npm start
 */

const inputs = [{ name: "x", dtype: "FP32", shape: [2] }] as const;
const outputs = [{ name: "sum", dtype: "FP32", shape: [1] }] as const;

await using triton = new Triton();
let attempts = 0;
let stopped = () => {};
const hasStopped = new Promise<void>((resolve) => {
  stopped = resolve;
});
triton.bind({
  modelName: "sum",
  inputs,
  outputs,
  inferFunc: batch(({ x }) => {
    attempts++;
    if (attempts < 3) throw new TritonError("UNAVAILABLE", "not yet", { retryAfterMs: 1 });
    return { sum: Float32Array.from({ length: x.shape[0]! }, (_, row) => x.get(row, 0) + x.get(row, 1)) };
  }),
});
triton.bind({
  modelName: "endless",
  inputs,
  outputs,
  // The time limit of the client cancels the request, so the model learns of it.
  inferFunc: sample(async (_request, { signal }) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    stopped();
    return { sum: [0] };
  }),
});
const { addresses } = await triton.serve({ frontends: [http({ port: 0 })] });
const { url } = addresses.http!;

// The types of the tensors give the types of the arguments and results.
await using client = new ModelClient<typeof inputs, typeof outputs>(url, "sum", {
  retries: 5,
  retryDelayMs: 1,
  retryUnavailable: true,
});
const { sum } = await client.inferSample({ x: [40, 2] });
const values: Float32Array = sum.data;
console.log(`sum: ${values[0]}, after ${attempts} attempts`);

await client.inferSample({ x: [1, 2, 3] }).catch((error: Error) => console.log(`not sent: ${error.message}`));

await using endless = new ModelClient<typeof inputs, typeof outputs>(url, "endless");
await endless
  .inferSample({ x: [1, 2] }, { timeoutMs: 500 })
  .catch((error: TritonError) => console.log(`${error.code}, a timeout: ${isTimeout(error)}`));
await hasStopped;
console.log("the model was told to stop");
