import { TritonError, toNdArray } from "@tritonjs/protocol";
import type { InferResult } from "./infer-result.js";

/**
 * Converts the outputs of a result to ndarrays.
 *
 * @param strip whether to remove the batch axis of a result with one row
 * @throws TritonError INTERNAL when `strip` is set and there is not exactly one row.
 */
export function resultArrays(
  result: Pick<InferResult, "tensors" | "modelName">,
  strip: boolean,
): Record<string, ReturnType<typeof toNdArray>> {
  const arrays: Record<string, ReturnType<typeof toNdArray>> = Object.create(null);
  for (const [name, tensor] of result.tensors) {
    if (strip && tensor.shape[0] !== 1) {
      throw new TritonError(
        "INTERNAL",
        `output '${name}' of one sample: expected a first dimension of 1, got shape [${tensor.shape.join(",")}]`,
        { reason: "INVALID_ANSWER" },
      );
    }
    const shown = strip ? tensor.reshaped(tensor.shape.slice(1)) : tensor;
    arrays[name] = toNdArray(shown, "output", name, result.modelName);
  }
  return arrays;
}
