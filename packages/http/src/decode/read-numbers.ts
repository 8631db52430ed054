import { type DataType, type Shape, Tensor, TritonError, typedArrayFor } from "@tritonjs/protocol";
import { asBoolean, asDouble, asInteger, asUnsigned, isArray } from "../json/access.js";
import { type JsonArray, type JsonValue, PackedNumbers } from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import { MAX_DATA_DEPTH } from "../limits.js";

const MISMATCH = "Shape does not match true shape of 'data' field";

/** Data types whose elements JSON can hold as numbers or booleans. */
export type NumericDataType = Exclude<DataType, "BYTES" | "FP16" | "BF16">;

/** How the elements of one data type are read from JSON. */
interface ElementReader {
  /** Which packed numbers can be taken without a look at each one. BOOL takes none. */
  readonly packed: "any" | "integers" | "unsigned" | "none";
  read(value: JsonValue): number | bigint;
}

const signed: ElementReader = { packed: "integers", read: (value) => asInteger(value) };
const unsigned: ElementReader = { packed: "unsigned", read: (value) => asUnsigned(value) };
const floating: ElementReader = { packed: "any", read: (value) => asDouble(value) };

/** Readers by data type. Integers outside of the type wrap around, as in Triton. */
const elementReaders: Readonly<Record<NumericDataType, ElementReader>> = {
  BOOL: { packed: "none", read: (value) => (asBoolean(value) ? 1 : 0) },
  UINT8: unsigned,
  UINT16: unsigned,
  UINT32: unsigned,
  UINT64: unsigned,
  INT8: signed,
  INT16: signed,
  INT32: signed,
  INT64: signed,
  FP32: floating,
  FP64: floating,
};

/**
 * Makes the tensor of a `data` array of numbers or booleans. The nesting of the elements does not matter, only their
 * number.
 *
 * @throws TritonError INTERNAL for the first wrong element, or when the number of elements is not `count`.
 */
export function readNumbers(datatype: NumericDataType, shape: Shape, count: number, data: JsonArray): Tensor {
  const reader = elementReaders[datatype];
  if (data instanceof PackedNumbers && data.values.length === count && accepts(reader, data)) {
    return Tensor.fromElements(datatype, shape, convertPacked(datatype, data.values));
  }
  try {
    const elements: (number | bigint)[] = [];
    collect(reader, data, count, elements, 0);
    if (elements.length !== count) throw new TritonError("INTERNAL", MISMATCH, { reason: "MALFORMED_JSON" });
    return Tensor.fromElements(datatype, shape, convert(datatype, elements));
  } catch (thrown) {
    const { code, message, reason } = TritonError.from(thrown);
    throw new TritonError(code, `Unable to parse 'data': ${message}`, { reason });
  }
}

/** Makes the error of data that is nested deeper than Triton allows. */
export function tooDeep(): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `JSON nesting depth exceeds maximum allowed limit (${MAX_DATA_DEPTH})`,
    { reason: "REQUEST_TOO_LARGE" },
  );
}

function accepts(reader: ElementReader, data: PackedNumbers): boolean {
  if (reader.packed === "any") return true;
  if (reader.packed === "none" || !data.integers) return false;
  return reader.packed === "integers" || !data.minuses;
}

function collect(
  reader: ElementReader,
  value: JsonValue,
  count: number,
  into: (number | bigint)[],
  depth: number,
): void {
  if (depth >= MAX_DATA_DEPTH) throw tooDeep();
  if (isArray(value)) {
    for (const element of elementsOf(value)) collect(reader, element, count, into, depth + 1);
    return;
  }
  if (into.length >= count) throw new TritonError("INTERNAL", MISMATCH, { reason: "MALFORMED_JSON" });
  into.push(reader.read(value));
}

function convertPacked(datatype: NumericDataType, values: Float64Array) {
  if (datatype === "FP64") return values.slice() as Float64Array<ArrayBuffer>;
  const elements = new (typedArrayFor(datatype))(values.length);
  if (elements instanceof BigInt64Array || elements instanceof BigUint64Array) {
    writeWords(new Int32Array(elements.buffer), values);
  } else for (let i = 0; i < elements.length; i++) elements[i] = values[i]!;
  return elements;
}

/** Writes integers of at most 53 bits as 64-bit integers, low word first, without a bigint for each. */
function writeWords(words: Int32Array, values: Float64Array): void {
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    words[2 * i] = value;
    words[2 * i + 1] = Math.floor(value / 0x1_0000_0000);
  }
}

function convert(datatype: NumericDataType, values: readonly (number | bigint)[]) {
  const elements = new (typedArrayFor(datatype))(values.length);
  if (elements instanceof BigInt64Array || elements instanceof BigUint64Array) {
    for (let i = 0; i < values.length; i++) elements[i] = BigInt(values[i]!);
  } else {
    for (let i = 0; i < values.length; i++) elements[i] = narrow(values[i]!);
  }
  return elements;
}

function narrow(value: number | bigint): number {
  return typeof value === "bigint" ? Number(BigInt.asIntN(32, value)) : value;
}
