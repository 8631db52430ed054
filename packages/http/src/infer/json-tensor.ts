import {
  type DataType,
  dataTypeNamed,
  elementByteSize,
  errorFor,
  type FixedDataType,
  floatReader,
  isDataType,
  isOnlyBinary,
  type Shape,
  Tensor,
  TritonError,
  typedArrayFor,
  wireShape,
} from "@tritonjs/protocol";
import {
  asArray,
  asBoolean,
  asBytes,
  asDouble,
  asInteger,
  asUnsigned,
  isArray,
  type JsonArray,
  JsonDouble,
  type JsonValue,
  member,
  PackedNumbers,
  PackedStrings,
} from "../json/json-value.js";
import { elementsOf } from "../json/parse-json.js";
import { checkCount, InputTooLarge, MAX_DATA_DEPTH, MAX_RANK } from "../limits.js";

const NO_BYTES = new Uint8Array(0);
const MAX_INT64 = 2n ** 63n - 1n;

interface JsonTensorHeader {
  readonly name: string;
  readonly datatype: string;
  readonly shape: readonly (number | bigint)[];
  /** True when the model's input has no dimensions: the empty shape then means one element. */
  readonly scalar: boolean;
}

/**
 * Reads the tensor of an input with `data` in the JSON. The data of a tensor without elements is ignored and may be
 * missing.
 *
 * @throws TritonError for data that does not fit, and for tensors of more than `maxInputSize` bytes.
 */
export function readJsonTensor(header: JsonTensorHeader, input: JsonValue, maxInputSize: number): Tensor {
  const { name, datatype } = header;
  const shape = wireShape(header.shape);
  const scalar = header.scalar && shape.length === 0;
  const count = scalar ? 1n : countElements(name, header.shape);
  if (count === 0n) return Tensor.fromBytes(datatypeOf(datatype), shape, NO_BYTES);
  const data = asArray(member(input, "data", "Unable to parse 'data'"), "Unable to parse 'data'");
  if (datatype === "BYTES") return limited(name, readStrings(shape, data), maxInputSize);
  const size = isDataType(datatype) ? elementByteSize(datatype) : 0;
  checkByteSize(name, count, size, maxInputSize);
  return readElements(name, datatype, shape, Number(count), data);
}

/** The data type with this name; an unknown one is `<invalid>`, which no model expects. */
export function datatypeOf(name: string): DataType {
  return dataTypeNamed(name) ?? ("<invalid>" as DataType);
}

export function readElements(
  name: string,
  datatype: string,
  shape: Shape,
  count: number,
  data: JsonArray,
): Tensor {
  if (!isDataType(datatype) || datatype === "BYTES") {
    throw errorFor("INVALID_INPUT", `invalid datatype for input ${name}`);
  }
  if (isOnlyBinary(datatype)) {
    throw errorFor(
      "INVALID_INPUT",
      `receiving ${datatype} data via JSON is not supported. Please use the binary data format for input ${name}`,
    );
  }
  return readNumbers(datatype, shape, count, data);
}

function checkByteSize(name: string, count: bigint, elementSize: number, maxInputSize: number): void {
  const size = BigInt(elementSize);
  if (size > 1n && count > MAX_INT64 / size) {
    throw errorFor(
      "INVALID_INPUT",
      `byte size overflow for input '${name}': element count (${count}) * data type size (${size}) exceeds ` +
        `maximum allowed size (${MAX_INT64})`,
    );
  }
  checkLimit(name, BigInt.asUintN(64, count * size), maxInputSize);
}

function limited(name: string, tensor: Tensor, maxInputSize: number): Tensor {
  checkLimit(name, BigInt(tensor.byteLength), maxInputSize);
  return tensor;
}

function checkLimit(name: string, byteSize: bigint, maxInputSize: number): void {
  if (byteSize <= maxInputSize) return;
  throw new InputTooLarge(
    `JSON input '${name}' has a byte_size (${byteSize} bytes) that exceeds the maximum allowed value of ` +
      `${maxInputSize} bytes`,
  );
}

const MAX_ELEMENTS = 2n ** 63n - 1n;
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
function countElements(input: string, shape: readonly (number | bigint)[]): bigint {
  if (shape.length === 0) return 0n;
  let count = 1n;
  for (const value of shape) {
    const dim = BigInt(value);
    if (dim === -1n) return -1n;
    if (dim < 0n) throw invalidShape(input, shape, "contains one or more invalid dimensions");
    if (dim === 0n) return 0n;
    count *= dim;
    if (count > MAX_ELEMENTS) {
      throw invalidShape(
        input,
        shape,
        `causes total element count to exceed maximum size of ${MAX_ELEMENTS}`,
      );
    }
  }
  return count;
}

function invalidShape(input: string, shape: readonly (number | bigint)[], fault: string): TritonError {
  return errorFor("INVALID_INPUT", `invalid shape for input '${input}': shape [${shape.join(",")}] ${fault}`);
}

const MISMATCH = "Shape does not match true shape of 'data' field";

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
const A_STRING = new Uint8Array(0);

/** The reader for a data type. Integers outside of the type wrap around, as in Triton. */
function readerFor(datatype: FixedDataType): ElementReader {
  if (datatype === "BOOL") return boolean;
  if (floatReader(datatype) !== undefined) return floating;
  return datatype.startsWith("U") ? unsigned : signed;
}

/**
 * Makes the tensor of a `data` array of numbers or booleans. The nesting of the elements does not matter, only their
 * number.
 *
 * @throws TritonError INTERNAL for the first wrong element, or when the number of elements is not `count`.
 */
function readNumbers(datatype: FixedDataType, shape: Shape, count: number, data: JsonArray): Tensor {
  const reader = readerFor(datatype);
  try {
    if (data instanceof PackedNumbers) {
      checkPacked(reader, data, count);
      return Tensor.fromElements(datatype, shape, convertPacked(datatype, data));
    }
    if (data instanceof PackedStrings) reader.read(A_STRING);
    const elements: (number | bigint)[] = [];
    collectNumbers(reader, data, count, elements, 0);
    if (elements.length !== count) throw mismatch();
    return Tensor.fromElements(datatype, shape, convert(datatype, elements));
  } catch (thrown) {
    const { code, message, reason } = TritonError.from(thrown);
    throw new TritonError(code, `Unable to parse 'data': ${message}`, { reason });
  }
}

function mismatch(): TritonError {
  return errorFor("MALFORMED_JSON", MISMATCH);
}

function tooDeep(): TritonError {
  return errorFor(
    "REQUEST_TOO_LARGE",
    `JSON nesting depth exceeds maximum allowed limit (${MAX_DATA_DEPTH})`,
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

function collectNumbers(
  reader: ElementReader,
  value: JsonValue,
  count: number,
  into: (number | bigint)[],
  depth: number,
): void {
  if (depth >= MAX_DATA_DEPTH) throw tooDeep();
  if (isArray(value)) {
    for (const element of elementsOf(value)) collectNumbers(reader, element, count, into, depth + 1);
    return;
  }
  if (into.length >= count) throw mismatch();
  into.push(reader.read(value));
}

function convertPacked(datatype: FixedDataType, { values, exact }: PackedNumbers) {
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

function convert(datatype: FixedDataType, values: readonly (number | bigint)[]) {
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
  collectStrings(data, elements, 0);
  return Tensor.fromElements("BYTES", shape, elements);
}

function collectStrings(value: JsonValue, into: Uint8Array[], depth: number): void {
  if (depth >= MAX_DATA_DEPTH) throw tooDeep();
  if (isArray(value)) for (const element of elementsOf(value)) collectStrings(element, into, depth + 1);
  else into.push(asElement(value));
}

function asElement(value: JsonValue): Uint8Array {
  return asBytes(value, "Unable to parse JSON bytes array");
}
