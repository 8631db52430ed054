import { type DataType, type Shape, Tensor, TritonError, typedArrayFor } from "@tritonjs/protocol";
import { asBoolean, asDouble, asInteger, asUnsigned, isArray } from "../json/access.js";
import {
  type JsonArray,
  JsonDouble,
  type JsonValue,
  PackedNumbers,
  PackedStrings,
} from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import { MAX_DATA_DEPTH } from "../limits.js";

const MISMATCH = "Shape does not match true shape of 'data' field";

/** Data types whose elements JSON can hold as numbers or booleans. */
export type NumericDataType = Exclude<DataType, "BYTES" | "FP16" | "BF16">;

/** How the elements of one data type are read from JSON. */
interface ElementReader {
  /** Which packed values it takes. */
  readonly takes: "any" | "integers" | "unsigned";
  readonly booleans: boolean;
  read(value: JsonValue): number | bigint;
}

const signed: ElementReader = { takes: "integers", booleans: false, read: (value) => asInteger(value) };
const unsigned: ElementReader = { takes: "unsigned", booleans: false, read: (value) => asUnsigned(value) };
const floating: ElementReader = { takes: "any", booleans: false, read: (value) => asDouble(value) };
const boolean: ElementReader = { takes: "any", booleans: true, read: (value) => (asBoolean(value) ? 1 : 0) };
const NO_BYTES = new Uint8Array(0);

/** Readers by data type. Integers outside of the type wrap around, as in Triton. */
const elementReaders: Readonly<Record<NumericDataType, ElementReader>> = {
  BOOL: boolean,
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
  try {
    if (data instanceof PackedNumbers) {
      checkPacked(reader, data, count);
      return Tensor.fromElements(datatype, shape, convertPacked(datatype, data));
    }
    if (data instanceof PackedStrings) reader.read(NO_BYTES);
    const elements: (number | bigint)[] = [];
    collect(reader, data, count, elements, 0);
    if (elements.length !== count) throw mismatch();
    return Tensor.fromElements(datatype, shape, convert(datatype, elements));
  } catch (thrown) {
    const { code, message, reason } = TritonError.from(thrown);
    throw new TritonError(code, `Unable to parse 'data': ${message}`, { reason });
  }
}

function mismatch(): TritonError {
  return new TritonError("INTERNAL", MISMATCH, { reason: "MALFORMED_JSON" });
}

/** Makes the error of data that is nested deeper than Triton allows. */
export function tooDeep(): TritonError {
  return new TritonError(
    "INVALID_ARG",
    `JSON nesting depth exceeds maximum allowed limit (${MAX_DATA_DEPTH})`,
    { reason: "REQUEST_TOO_LARGE" },
  );
}

/** @throws the error of the first wrong element of packed data, or of a wrong number of elements. */
function checkPacked(reader: ElementReader, data: PackedNumbers, count: number): void {
  const { values } = data;
  const wrong = data.booleans === reader.booleans ? firstWrong(reader, data) : 0;
  if (wrong >= 0 && wrong < Math.min(count, values.length)) reader.read(elementAt(data, wrong));
  if (values.length !== count) throw mismatch();
}

/** Index of the first number that the reader does not take; -1 when it takes all. */
function firstWrong({ takes }: ElementReader, { values, fractionAt, minuses, exact }: PackedNumbers): number {
  if (takes === "any" || (fractionAt < 0 && exact === undefined && !(takes === "unsigned" && minuses)))
    return -1;
  const end = fractionAt < 0 ? values.length : fractionAt;
  for (let i = 0; i < end; i++) {
    const value = values[i]!;
    if (takes === "unsigned" ? value < 0 : value > Number.MAX_SAFE_INTEGER && exact![i]! < 0n) return i;
  }
  return fractionAt;
}

/** The element of a packed array as the general parser reads it. */
function elementAt({ values, booleans, fractionAt, exact }: PackedNumbers, index: number): JsonValue {
  const value = values[index]!;
  if (booleans) return value !== 0;
  if (index === fractionAt) return new JsonDouble(value);
  if (Number.isSafeInteger(value)) return value;
  return value < 0 ? exact![index]! : BigInt.asUintN(64, exact![index]!);
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
  if (into.length >= count) throw mismatch();
  into.push(reader.read(value));
}

function convertPacked(datatype: NumericDataType, { values, exact }: PackedNumbers) {
  if (datatype === "FP64") return values.slice() as Float64Array<ArrayBuffer>;
  const elements = new (typedArrayFor(datatype))(values.length);
  if (elements instanceof BigInt64Array || elements instanceof BigUint64Array) {
    writeWords(new Int32Array(elements.buffer), values, exact);
  } else {
    for (let i = 0; i < elements.length; i++) elements[i] = values[i]!;
    if (exact !== undefined && datatype !== "FP32") narrowExact(elements, values, exact);
  }
  return elements;
}

/** Writes integers as 64-bit integers, low word first, without a bigint for each. */
function writeWords(words: Int32Array, values: Float64Array, exact: BigInt64Array | undefined): void {
  const exactWords = exact && new Int32Array(exact.buffer, exact.byteOffset, 2 * exact.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (exactWords !== undefined && Math.abs(value) > Number.MAX_SAFE_INTEGER) {
      words[2 * i] = exactWords[2 * i]!;
      words[2 * i + 1] = exactWords[2 * i + 1]!;
    } else {
      words[2 * i] = value;
      words[2 * i + 1] = Math.floor(value / 0x1_0000_0000);
    }
  }
}

/** Takes the low bits of integers beyond 2^53 from their 64 bits: a double has lost them. */
function narrowExact(
  elements: { [index: number]: number },
  values: Float64Array,
  exact: BigInt64Array,
): void {
  for (let i = 0; i < values.length; i++) {
    if (Math.abs(values[i]!) > Number.MAX_SAFE_INTEGER) elements[i] = Number(BigInt.asIntN(32, exact[i]!));
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
