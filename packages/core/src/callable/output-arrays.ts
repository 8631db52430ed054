import {
  fromConfigDataType,
  type ModelConfig,
  type Shape,
  TritonError,
  tensorFromValue,
  toNdArray,
} from "@tritonjs/protocol";
import type { NdArray } from "ndarray";

import { batchSizeError } from "../response/batch-size-error.js";
import { outputsByName } from "../response/outputs-by-name.js";

/**
 * Converts the result of a function of tensors to ndarrays by name, for a decorator that continues to work with it.
 *
 * @param rows number of rows that each output must have
 * @throws TritonError INTERNAL for outputs that the model does not have, and for another number of rows.
 */
export function outputArrays(value: unknown, config: ModelConfig, rows: number): Record<string, NdArray> {
  const named = outputsByName(
    value,
    config.output.map(({ name }) => name),
  );
  if (typeof named !== "object" || named === null) {
    throw new TritonError("INTERNAL", `Unsupported output type ${named === null ? "null" : typeof named}.`, {
      reason: "INVALID_OUTPUT",
    });
  }
  const arrays: Record<string, NdArray> = {};
  const wrong = new Map<string, Shape>();
  for (const [name, given] of Object.entries(named)) {
    const output = config.output.find((one) => one.name === name);
    if (output === undefined) {
      throw new TritonError(
        "INTERNAL",
        `Returned output \`${name}\` is not defined in model config for model \`${config.name}\`.`,
        { reason: "INVALID_OUTPUT" },
      );
    }
    const tensor = tensorFromValue(given, {
      what: `output '${name}' of model '${config.name}'`,
      datatype: fromConfigDataType(output.dataType)!,
      shape: [rows, ...output.dims],
    });
    if (tensor.shape[0] !== rows) wrong.set(name, tensor.shape);
    arrays[name] = toNdArray(tensor, "output", name, config.name) as NdArray;
  }
  if (wrong.size > 0) throw batchSizeError(wrong, rows);
  return arrays;
}
