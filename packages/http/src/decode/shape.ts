import { TritonError } from "@tritonjs/protocol";
import { asArray, asUnsigned } from "../json/access.js";
import { type JsonValue, PackedNumbers } from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import { MAX_RANK } from "../limits.js";
import { checkCount } from "./part-count.js";

const MAX_INT64 = 2n ** 63n - 1n;
const CONTEXT = "Unable to parse 'shape'";

/** Reads a shape: unsigned 64-bit integers, which Triton reinterprets as signed. */
export function readShape(json: JsonValue): (number | bigint)[] {
  const array = asArray(json, CONTEXT);
  checkCount("dimensions", array.length, MAX_RANK);
  if (array instanceof PackedNumbers && plainDims(array)) {
    return plainNumbers(array.values);
  }
  return elementsOf(array).map((dim) => {
    const value = asUnsigned(dim, CONTEXT);
    return typeof value === "bigint" ? BigInt.asIntN(64, value) : value;
  });
}

/** True for numbers that need no conversion. */
function plainDims({ booleans, integers, minuses, nested, exact }: PackedNumbers): boolean {
  return integers && !booleans && !minuses && !nested && exact === undefined;
}

/** A loop: `Array.from` with an iterator costs more than a short array. */
function plainNumbers(values: Float64Array): number[] {
  const numbers: number[] = [];
  for (let i = 0; i < values.length; i++) numbers.push(values[i]!);
  return numbers;
}

/**
 * Number of elements of a JSON tensor by Triton's count: the first zero ends the count, and an empty shape has none.
 *
 * @throws TritonError INVALID_ARG for negative dimensions and counts beyond 64 bits.
 */
export function countElements(input: string, shape: readonly (number | bigint)[]): bigint {
  if (shape.length === 0) return 0n;
  let count = 1n;
  for (const value of shape) {
    const dim = BigInt(value);
    if (dim === -1n) return -1n;
    if (dim < 0n) throw invalidShape(input, shape, "contains one or more invalid dimensions");
    if (dim === 0n) return 0n;
    count *= dim;
    if (count > MAX_INT64) {
      throw invalidShape(input, shape, `causes total element count to exceed maximum size of ${MAX_INT64}`);
    }
  }
  return count;
}

function invalidShape(input: string, shape: readonly (number | bigint)[], fault: string): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `invalid shape for input '${input}': shape [${shape.join(",")}] ${fault}`,
    { reason: "INVALID_INPUT" },
  );
}
