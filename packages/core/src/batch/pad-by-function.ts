import {
  fromConfigDataType,
  type ModelConfig,
  matchesShape,
  sameShape,
  shapeToString,
  type Tensor,
  TritonError,
  tensorFromValue,
  toNdArray,
} from "@tritonjs/protocol";
import type { BatchPadFunction } from "../config/options/variable-length-options.js";

import type { Tensors } from "./merge-inputs.js";

/**
 * Pads the requests of a batch with the model's own function, and checks its result. It must return the same number of
 * requests, each with its inputs and rows, and all of one shape.
 *
 * @throws TritonError INTERNAL if the function throws or returns something else.
 */
export function padByFunction(
  config: ModelConfig,
  pad: BatchPadFunction,
  requests: readonly Tensors[],
): readonly Tensors[] {
  const fault = (what: string, cause?: unknown): TritonError =>
    new TritonError("INTERNAL", `pad of model '${config.name}' ${what}`, { cause });
  const given = requests.map((inputs) =>
    Object.fromEntries(
      [...inputs].map(([name, tensor]) => [name, toNdArray(tensor, "input", name, config.name)]),
    ),
  );
  let padded: unknown;
  try {
    padded = pad(given as Parameters<BatchPadFunction>[0]);
  } catch (thrown) {
    throw fault(`threw an error: ${TritonError.from(thrown).message}`, thrown);
  }
  if (!Array.isArray(padded) || padded.length !== requests.length) {
    const got = Array.isArray(padded) ? `${padded.length} entries` : typeof padded;
    throw fault(
      `returned a wrong list: expected ${requests.length} entries, one for each request, got ${got}`,
    );
  }
  const first = new Map<string, Tensor>();
  return requests.map((inputs, i) => {
    const values = (padded as readonly (Readonly<Record<string, unknown>> | null | undefined)[])[i];
    const tensors = new Map<string, Tensor>();
    for (const [name, before] of inputs) {
      const { dims, dataType, isShapeTensor } = config.input.find((input) => input.name === name)!;
      const value = values?.[name];
      if (value === undefined) throw fault(`returned no input '${name}' for a request`);
      const rows = config.maxBatchSize > 0 && !isShapeTensor ? [before.shape[0]!] : [];
      const shape = [...rows, ...dims];
      const what = `input '${name}' from pad of model '${config.name}'`;
      let tensor: Tensor;
      try {
        tensor = tensorFromValue(value, { what, datatype: fromConfigDataType(dataType)!, shape });
      } catch (thrown) {
        throw fault(`returned a wrong ${TritonError.from(thrown).message}`, thrown);
      }
      const known = first.get(name) ?? tensor;
      first.set(name, known);
      if (!matchesShape(shape, tensor.shape) || !sameShape(known.shape, tensor.shape, rows.length)) {
        throw fault(
          `returned input '${name}' with shape ${shapeToString(tensor.shape)}, expected ` +
            `${shapeToString([...rows, ...known.shape.slice(rows.length)])}`,
        );
      }
      tensors.set(name, tensor);
    }
    return tensors;
  });
}
