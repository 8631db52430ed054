import { batch } from "@tritonjs/core";

/** Inputs and outputs of the model. */
export const inputs = [{ name: "x", dtype: "FP32", shape: [1] }] as const;
export const outputs = [{ name: "y", dtype: "FP32", shape: [1] }] as const;

/** Square roots from a faulty library: a negative number ends the process, and infinity causes an endless loop. */
export default batch<typeof inputs, typeof outputs>(({ x }) => {
  for (const value of x.data) {
    if (value < 0) process.kill(process.pid, "SIGSEGV");
    while (value === Number.POSITIVE_INFINITY);
  }
  return { y: x.data.map(Math.sqrt) };
});
