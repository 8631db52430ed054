import type { InferenceResponse } from "@tritonjs/core/frontend";
import { TritonError } from "@tritonjs/protocol";
import { invalidField } from "../errors/openai-error.js";
import type { EmbeddingModel } from "./embedding-model.js";

/** One embedding. */
export type Vector = Float32Array;

/**
 * Reads the embeddings of a response.
 *
 * @throws TritonError INTERNAL for an output that does not hold them
 */
export function readVectors(model: EmbeddingModel, { outputs }: InferenceResponse, rows: number): Vector[] {
  const { name, output, requestInput } = model;
  const tensor = outputs.get(output);
  if (tensor === undefined) throw invalidOutput(name, output, "an embedding", "no output");
  if (requestInput !== undefined) {
    const vector = fromJson(tensor.elements[0] as Uint8Array);
    if (vector === undefined) throw invalidOutput(name, output, "a JSON array of numbers", "other text");
    return [vector];
  }
  const elements = tensor.elements as Float32Array | Float64Array;
  const { length } = elements;
  if (length === 0 || length % rows !== 0) {
    throw invalidOutput(name, output, `${rows} embeddings`, `shape [${tensor.shape.join(", ")}]`);
  }
  const size = length / rows;
  return Array.from({ length: rows }, (_, row) =>
    // A copy: the model may use its memory again.
    Float32Array.from(elements.subarray(row * size, (row + 1) * size)),
  );
}

/** Tokens of the inputs of a request; undefined if the model does not report them. */
export function countedTokens({ outputs }: InferenceResponse): number | undefined {
  const tensor = outputs.get("num_input_tokens");
  if (tensor === undefined || tensor.datatype === "BYTES") return undefined;
  let sum = 0;
  for (const count of tensor.elements as Iterable<number | bigint>) sum += Number(count);
  return sum;
}

/**
 * Cuts an embedding to its first numbers and gives it the length 1 again, as OpenAI does for `dimensions`.
 *
 * @throws OpenAiError 400 for more numbers than there are
 */
export function cutVector(vector: Vector, dimensions: number): Vector {
  if (dimensions === vector.length) return vector;
  if (dimensions > vector.length) {
    const text = `'dimensions': expected at most ${vector.length}, the length of the model's embeddings, got ${dimensions}`;
    throw invalidField("dimensions", text);
  }
  const cut = vector.slice(0, dimensions);
  const norm = Math.hypot(...cut);
  return norm === 0 ? cut : cut.map((value) => value / norm);
}

/** An embedding as base64 of its FP32 numbers in little-endian order. */
export function vectorBase64(vector: Vector): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString("base64");
}

function fromJson(bytes: Uint8Array | undefined): Vector | undefined {
  try {
    const value = JSON.parse(Buffer.from(bytes ?? []).toString()) as unknown;
    return Array.isArray(value) && value.every((one) => typeof one === "number")
      ? Float32Array.from(value)
      : undefined;
  } catch {
    return undefined;
  }
}

function invalidOutput(model: string, output: string, expected: string, got: string): TritonError {
  return new TritonError(
    "INTERNAL",
    `model '${model}', output '${output}': expected ${expected}, got ${got}`,
    {
      reason: "INVALID_OUTPUT",
    },
  );
}
