import { createHash } from "node:crypto";
import type { PendingRequest } from "../request/pending-request.js";

/**
 * Computes the key of a request in the response cache: a digest of everything that the answer depends on. Triton's key
 * omits shapes, data types, requested outputs and parameters, so requests that differ in them share answers.
 *
 * @param outputs names of all outputs of the model, which answer a request that names none
 */
export function cacheKey(
  model: string,
  version: string,
  request: PendingRequest,
  outputs: readonly string[],
): string {
  const hash = createHash("sha256");
  const inputs = [...request.inputs].sort(([a], [b]) => (a < b ? -1 : 1));
  const header = {
    model,
    version,
    inputs: inputs.map(([name, { datatype, shape, byteLength }]) => [name, datatype, shape, byteLength]),
    outputs: answered(request.requestedOutputs, outputs),
    parameters: Object.entries(request.parameters)
      .map(([name, value]) => [name, typeof value, String(value)])
      .sort(([a], [b]) => (a! < b! ? -1 : 1)),
  };
  hash.update(JSON.stringify(header));
  for (const [, tensor] of inputs) hash.update(tensor.bytes);
  return hash.digest("base64");
}

/** Names of the answered outputs; empty for all of them, even if all are named. */
function answered(requested: readonly string[], all: readonly string[]): string[] {
  const named = new Set(requested);
  return named.size === all.length ? [] : [...named].sort();
}
