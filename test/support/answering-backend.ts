import type { Backend, Executor } from "@tritonjs/core/backend";
import { Tensor, TritonError } from "@tritonjs/protocol";

/** A backend that answers the input `x` of each request with the output `y` of a shape, or an error. */
export function answeringBackend(
  shape: readonly number[],
  answer: (x: Tensor) => Tensor | TritonError,
  settings: Partial<Executor> = {},
): Backend {
  const executor: Executor = {
    details: {},
    mustFinish: false,
    start: async () => {},
    stop: async () => {},
    execute: async ({ requests }) =>
      requests.map(({ inputs }) => {
        const y = answer(inputs.get("x")!);
        return TritonError.is(y) ? y : new Map([["y", y]]);
      }),
    ...settings,
  };
  return {
    backendName: "answering",
    platform: "",
    describe: () => ({
      inputs: [{ name: "x", dtype: "FP32", shape: [-1] }],
      outputs: [{ name: "y", dtype: "FP32", shape }],
    }),
    createExecutor: () => executor,
  };
}

/**
 * A backend that adds the input `x` of each request to `seen`, and answers with the number of its elements.
 *
 * @param fails whether it fails instead
 */
export function keepingBackend(seen: Tensor[], settings: Partial<Executor>, fails = false): Backend {
  const answer = (x: Tensor) => {
    seen.push(x);
    if (fails) return new TritonError("INTERNAL", "it fails");
    return Tensor.fromElements("FP32", [1], Float32Array.of(x.elements.length));
  };
  return answeringBackend([1], answer, settings);
}
