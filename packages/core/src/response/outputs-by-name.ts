import { TritonError } from "@tritonjs/protocol";

/**
 * Names the results of a function of tensors: a list is in the order of the model's outputs.
 *
 * @param names names of the model's outputs
 * @throws TritonError INTERNAL for a list of another length.
 */
export function outputsByName(value: unknown, names: Iterable<string>): unknown {
  if (!Array.isArray(value)) return value;
  const order = [...names];
  if (value.length !== order.length) {
    throw new TritonError("INTERNAL", "Outputs length different than config outputs length", {
      reason: "INVALID_OUTPUT",
    });
  }
  return Object.fromEntries(order.map((name, i) => [name, value[i] as unknown]));
}
