import { sameShape, shapeToString, TritonError, tensorFromValue } from "@tritonjs/protocol";

import type { WarmupInputOptions, WarmupOptions } from "./model-options.js";

/**
 * Data of a warm-up sample for an input, in its wire form. A text with the problem if it does not fit. Undefined
 * without data.
 */
export function warmupData(
  sample: string,
  name: string,
  input: WarmupInputOptions,
): Uint8Array | string | undefined {
  const { data, dtype, shape } = input;
  if (data === undefined) return undefined;
  const what = `data of input '${name}' in warmup sample '${sample}'`;
  try {
    const tensor = tensorFromValue(data, { what, datatype: dtype, shape, takesScalar: true });
    if (!sameShape(tensor.shape, shape)) {
      return `${what}: expected shape ${shapeToString(shape)}, got ${shapeToString(tensor.shape)}`;
    }
    // A copy, so that later changes by the caller have no effect.
    return new Uint8Array(tensor.bytes);
  } catch (error) {
    return TritonError.from(error).message;
  }
}

/** Lists problems with the data of warm-up samples. */
export function warmupDataProblems(samples: readonly WarmupOptions[] = []): string[] {
  return samples.flatMap(({ name, inputs }) =>
    Object.entries(inputs ?? {})
      .map(([input, options]) => warmupData(name, input, options))
      .filter((problem) => typeof problem === "string"),
  );
}
