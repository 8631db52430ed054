import type { Backend, Executor } from "@tritonjs/core/backend";
import { Tensor, TritonError } from "@tritonjs/protocol";

/**
 * A backend that adds the input `x` of each request to `seen`, and answers with the number of its elements.
 *
 * @param fails whether it fails instead
 */
export function keepingBackend(seen: Tensor[], settings: Partial<Executor>, fails = false): Backend {
  const executor: Executor = {
    details: {},
    mustFinish: false,
    start: async () => {},
    stop: async () => {},
    execute: async ({ requests }) =>
      requests.map(({ inputs }) => {
        const x = inputs.get("x")!;
        seen.push(x);
        if (fails) return new TritonError("INTERNAL", "it fails");
        return new Map([["y", Tensor.fromElements("FP32", [1], Float32Array.of(x.elements.length))]]);
      }),
    ...settings,
  };
  return {
    backendName: "keeping",
    platform: "",
    describe: () => ({
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [1] }],
    }),
    createExecutor: () => executor,
  };
}
