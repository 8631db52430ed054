import { createHash } from "node:crypto";
import type { InferenceRequest } from "../request/inference-request.js";

/**
 * The key of a request in the response cache: a digest of everything that the answer depends on. Triton's leaves
 * shapes, data types, requested outputs and parameters out, so that requests which differ in them share answers.
 */
export function cacheKey(model: string, version: string, request: InferenceRequest): string {
  const hash = createHash("sha256");
  const inputs = [...request.inputs].sort(([a], [b]) => (a < b ? -1 : 1));
  const header = {
    model,
    version,
    inputs: inputs.map(([name, { datatype, shape, byteLength }]) => [name, datatype, shape, byteLength]),
    outputs: [...request.requestedOutputs].sort(),
    parameters: Object.entries(request.parameters)
      .map(([name, value]) => [name, typeof value, String(value)])
      .sort(([a], [b]) => (a! < b! ? -1 : 1)),
  };
  hash.update(JSON.stringify(header));
  for (const [, tensor] of inputs) hash.update(tensor.bytes);
  return hash.digest("base64");
}
