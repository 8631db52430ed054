import { sameShape, shapeToString, TritonError, tensorFromValue } from "@tritonjs/protocol";

import type { WarmupInputOptions, WarmupOptions } from "./model-options.js";

/** The data that a warmup sample gives an input, in its wire form; a text when it does not fit; undefined without any. */
export function warmupData(
  sample: string,
  name: string,
  input: WarmupInputOptions,
): Uint8Array | string | undefined {
  const { data, dtype, shape } = input;
  if (data === undefined) return undefined;
  const what = `data of input '${name}' in warmup sample '${sample}'`;
  try {
    const tensor = tensorFromValue(data, { what, datatype: dtype, shape });
    if (!sameShape(tensor.shape, shape)) {
      return `${what}: expected shape ${shapeToString(shape)}, got ${shapeToString(tensor.shape)}`;
    }
    // What the caller does to it later changes nothing.
    return new Uint8Array(tensor.bytes);
  } catch (error) {
    return TritonError.from(error).message;
  }
}

/** What is wrong with the data of warmup samples. */
export function warmupDataProblems(samples: readonly WarmupOptions[] = []): string[] {
  return samples.flatMap(({ name, inputs }) =>
    Object.entries(inputs ?? {})
      .map(([input, options]) => warmupData(name, input, options))
      .filter((problem) => typeof problem === "string"),
  );
}
