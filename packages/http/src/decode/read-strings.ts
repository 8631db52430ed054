import { type Shape, Tensor } from "@tritonjs/protocol";
import { asBytes, isArray } from "../json/access.js";
import { type JsonArray, type JsonValue, PackedNumbers, PackedStrings } from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import { MAX_DATA_DEPTH } from "../limits.js";
import { tooDeep } from "./read-numbers.js";

/**
 * Makes the `BYTES` tensor of a `data` array of strings. The request validation checks their number.
 *
 * @throws TritonError for an element that is not a string.
 */
export function readStrings(shape: Shape, data: JsonArray): Tensor {
  if (data instanceof PackedStrings) return Tensor.fromBytes("BYTES", shape, data.bytes);
  const elements: Uint8Array[] = [];
  if (data instanceof PackedNumbers) {
    if (data.values.length > 0) asElement(data.values[0]!);
    return Tensor.fromElements("BYTES", shape, elements);
  }
  collect(data, elements, 0);
  return Tensor.fromElements("BYTES", shape, elements);
}

function collect(value: JsonValue, into: Uint8Array[], depth: number): void {
  if (depth >= MAX_DATA_DEPTH) throw tooDeep();
  if (isArray(value)) for (const element of elementsOf(value)) collect(element, into, depth + 1);
  else into.push(asElement(value));
}

function asElement(value: JsonValue): Uint8Array {
  return asBytes(value, "Unable to parse JSON bytes array");
}
