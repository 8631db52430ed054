import { closestName } from "./closest-name.js";

/*
 * FP16 and BF16 are transferred as their raw 16 bits. Reading is one table look-up. Writing rounds to the nearest
 * value, ties to even, as IEEE 754 demands.
 */

const float32 = new Float32Array(1);
const bits = new Uint32Array(float32.buffer);

let float16Table: Float32Array | undefined;

function makeFloat16Table(): Float32Array {
  const table = new Uint32Array(65536);
  for (let half = 0; half < 65536; half++) {
    const sign = (half & 0x8000) << 16;
    const exponent = (half >>> 10) & 0x1f;
    const mantissa = half & 0x3ff;
    if (exponent === 0x1f) {
      table[half] = sign | 0x7f80_0000 | (mantissa << 13);
    } else if (exponent !== 0) {
      table[half] = sign | ((exponent + 112) << 23) | (mantissa << 13);
    } else {
      float32[0] = mantissa * 2 ** -24;
      table[half] = sign | bits[0]!;
    }
  }
  return new Float32Array(table.buffer);
}

/** The number represented by 16 bits of FP16. */
export function fromFloat16(half: number): number {
  float16Table ??= makeFloat16Table();
  return float16Table[half & 0xffff]!;
}

/**
 * The bits of a number as FP32. If the number is not an exact FP32, the last bit is set to odd. Rounding the result
 * further then equals rounding the number itself, whereas rounding twice to the nearest would not.
 */
function float32Bits(value: number): number {
  float32[0] = value;
  const nearest = float32[0]!;
  const x = bits[0]!;
  if (nearest === value || Number.isNaN(value)) return x;
  return ((Math.abs(nearest) > Math.abs(value) ? x - 1 : x) | 1) >>> 0;
}

/** The nearest FP16 of a number, as its 16 bits. A number that is too large becomes infinity. */
export function toFloat16(value: number): number {
  const x = float32Bits(value);
  const sign = (x >>> 16) & 0x8000;
  const magnitude = x & 0x7fff_ffff;
  if (magnitude > 0x7f80_0000) return sign | 0x7e00;
  if (magnitude >= 0x4780_0000) return sign | 0x7c00;
  if (magnitude < 0x3880_0000) {
    // Below the smallest normal FP16: a multiple of 2^-24, rounded to even. Exact in double arithmetic.
    const units = Math.abs(value) * 2 ** 24;
    const floor = Math.floor(units);
    const rest = units - floor;
    return sign | (rest > 0.5 || (rest === 0.5 && (floor & 1) === 1) ? floor + 1 : floor);
  }
  const rounded = magnitude + 0xfff + ((magnitude >>> 13) & 1);
  return sign | ((rounded - 0x3800_0000) >>> 13);
}

/** The number represented by 16 bits of BF16, the upper half of an FP32. */
export function fromBfloat16(half: number): number {
  bits[0] = (half & 0xffff) << 16;
  return float32[0]!;
}

/** The nearest BF16 of a number, as its 16 bits. */
export function toBfloat16(value: number): number {
  const x = float32Bits(value);
  if ((x & 0x7fff_ffff) > 0x7f80_0000) return (x >>> 16) | 0x40;
  return (x + 0x7fff + ((x >>> 16) & 1)) >>> 16;
}

function map<T extends Float32Array | Uint16Array>(
  from: ArrayLike<number>,
  to: T,
  convert: (value: number) => number,
): T {
  for (let i = 0; i < to.length; i++) to[i] = convert(from[i]!);
  return to;
}

/** Converts FP16 bits to numbers. */
export function float16ToFloat32(halves: Uint16Array): Float32Array {
  return map(halves, new Float32Array(halves.length), fromFloat16);
}

/** Converts numbers to FP16 bits. */
export function float32ToFloat16(values: ArrayLike<number>): Uint16Array {
  return map(values, new Uint16Array(values.length), toFloat16);
}

/** Converts BF16 bits to numbers. */
export function bfloat16ToFloat32(halves: Uint16Array): Float32Array {
  return map(halves, new Float32Array(halves.length), fromBfloat16);
}

/** Converts numbers to BF16 bits. */
export function float32ToBfloat16(values: ArrayLike<number>): Uint16Array {
  return map(values, new Uint16Array(values.length), toBfloat16);
}

/** A data type of the v2 protocol. `BYTES` is Triton's `TYPE_STRING`. */
export type DataType =
  | "BOOL"
  | "UINT8"
  | "UINT16"
  | "UINT32"
  | "UINT64"
  | "INT8"
  | "INT16"
  | "INT32"
  | "INT64"
  | "FP16"
  | "BF16"
  | "FP32"
  | "FP64"
  | "BYTES";

/**
 * The JavaScript container for the elements of a tensor of data type `D`. `BOOL` is one byte of 0 or 1. `FP16` and
 * `BF16` are their 16 raw bits (see `float32ToFloat16` and its siblings). `BYTES` is one byte array per element.
 */
export type ElementsOf<D extends DataType> = D extends keyof FixedElements ? FixedElements[D] : Uint8Array[];

interface FixedElements {
  BOOL: Uint8Array;
  UINT8: Uint8Array;
  UINT16: Uint16Array;
  UINT32: Uint32Array;
  UINT64: BigUint64Array<ArrayBuffer>;
  INT8: Int8Array;
  INT16: Int16Array;
  INT32: Int32Array;
  INT64: BigInt64Array<ArrayBuffer>;
  FP16: Uint16Array;
  BF16: Uint16Array;
  FP32: Float32Array;
  FP64: Float64Array;
}

/** Any array that can hold a tensor of a fixed-size data type. */
export type TypedArray = FixedElements[keyof FixedElements];

/** Any container of tensor elements. */
export type Elements = TypedArray | Uint8Array[];

/** Constructor of a typed array, reduced to the members that the tensor code uses. */
interface TypedArrayConstructor {
  new (length: number): TypedArray;
  new (elements: TypedArray): TypedArray;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TypedArray;
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
}

const constructors: Record<Exclude<DataType, "BYTES">, TypedArrayConstructor> = {
  BOOL: Uint8Array,
  UINT8: Uint8Array,
  UINT16: Uint16Array,
  UINT32: Uint32Array,
  UINT64: BigUint64Array,
  INT8: Int8Array,
  INT16: Int16Array,
  INT32: Int32Array,
  INT64: BigInt64Array,
  FP16: Uint16Array,
  BF16: Uint16Array,
  FP32: Float32Array,
  FP64: Float64Array,
};

/** All data types, in the order of Triton's documentation. */
export const DATA_TYPES: readonly DataType[] = [...(Object.keys(constructors) as DataType[]), "BYTES"];

/** True if `value` names a data type of the v2 protocol. */
export function isDataType(value: unknown): value is DataType {
  return value === "BYTES" || (typeof value === "string" && Object.hasOwn(constructors, value));
}

/** Size of one element in bytes; 0 for `BYTES`, whose elements differ in size. */
export function elementByteSize(datatype: DataType): number {
  return datatype === "BYTES" ? 0 : constructors[datatype].BYTES_PER_ELEMENT;
}

/** The typed array that holds elements of `datatype`. */
export function typedArrayFor(datatype: Exclude<DataType, "BYTES">): TypedArrayConstructor {
  return constructors[datatype];
}

/** Triton's name of a data type in a model configuration, such as `TYPE_FP32`. `BYTES` is `TYPE_STRING`. */
export function toConfigDataType(datatype: DataType): string {
  return datatype === "BYTES" ? "TYPE_STRING" : `TYPE_${datatype}`;
}

const byConfigName = new Map<string, DataType>();
for (const datatype of DATA_TYPES) byConfigName.set(toConfigDataType(datatype), datatype);

/** The data type for a name of the model configuration. `undefined` for an unknown one. */
export function fromConfigDataType(name: string): DataType | undefined {
  const known = byConfigName.get(name);
  if (known !== undefined) return known;
  const bare = name === "TYPE_STRING" ? "BYTES" : name.replace(/^TYPE_/, "");
  return name !== "TYPE_BYTES" && isDataType(bare) ? bare : undefined;
}

type Converter = (scalar: unknown) => number | bigint | undefined;

const integer =
  (min: number, max: number): Converter =>
  (scalar) =>
    typeof scalar === "number" && Number.isInteger(scalar) && scalar >= min && scalar <= max
      ? scalar
      : undefined;

const bigInteger =
  (min: bigint, max: bigint): Converter =>
  (scalar) => {
    if (typeof scalar === "bigint") return scalar >= min && scalar <= max ? scalar : undefined;
    return Number.isSafeInteger(scalar) && BigInt(scalar as number) >= min
      ? BigInt(scalar as number)
      : undefined;
  };

const float: Converter = (scalar) => (typeof scalar === "number" ? scalar : undefined);

/** Conversions of a scalar to an element of a data type; undefined for a scalar that does not fit. */
export const SCALAR_CONVERTERS: Record<Exclude<DataType, "BYTES">, Converter> = {
  BOOL: (scalar) =>
    typeof scalar === "boolean" ? Number(scalar) : scalar === 0 || scalar === 1 ? scalar : undefined,
  UINT8: integer(0, 0xff),
  UINT16: integer(0, 0xffff),
  UINT32: integer(0, 0xffff_ffff),
  UINT64: bigInteger(0n, 0xffff_ffff_ffff_ffffn),
  INT8: integer(-0x80, 0x7f),
  INT16: integer(-0x8000, 0x7fff),
  INT32: integer(-0x8000_0000, 0x7fff_ffff),
  INT64: bigInteger(-0x8000_0000_0000_0000n, 0x7fff_ffff_ffff_ffffn),
  FP16: (scalar) => (typeof scalar === "number" ? toFloat16(scalar) : undefined),
  BF16: (scalar) => (typeof scalar === "number" ? toBfloat16(scalar) : undefined),
  FP32: float,
  FP64: float,
};

/** Scalars that fit, for errors. */
export const SCALAR_EXPECTATIONS: Record<Exclude<DataType, "BYTES">, string> = {
  BOOL: "a boolean, 0 or 1",
  UINT8: "an integer in [0, 255]",
  UINT16: "an integer in [0, 65535]",
  UINT32: "an integer in [0, 2^32)",
  UINT64: "a bigint or safe integer in [0, 2^64)",
  INT8: "an integer in [-128, 127]",
  INT16: "an integer in [-32768, 32767]",
  INT32: "an integer in [-2^31, 2^31)",
  INT64: "a bigint or safe integer in [-2^63, 2^63)",
  FP16: "a number",
  BF16: "a number",
  FP32: "a number",
  FP64: "a number",
};

/** Names of data types in JavaScript, NumPy, TensorFlow, ONNX and C, besides those of one letter and a number of bits. */
const FOREIGN_NAMES: Readonly<Record<string, DataType>> = {
  float: "FP32",
  single: "FP32",
  number: "FP32",
  double: "FP64",
  half: "FP16",
  bfloat16: "BF16",
  bool: "BOOL",
  boolean: "BOOL",
  byte: "UINT8",
  uint8clampedarray: "UINT8",
  short: "INT16",
  int: "INT32",
  integer: "INT32",
  long: "INT64",
  bigint: "INT64",
  bigint64array: "INT64",
  biguint64array: "UINT64",
  string: "BYTES",
  str: "BYTES",
  text: "BYTES",
  object: "BYTES",
  buffer: "BYTES",
};

const LETTERS: Readonly<Record<string, string>> = { float: "FP", f: "FP", fp: "FP", i: "INT", u: "UINT" };

/**
 * Describes a data type that the protocol does not have: it proposes the one that is likely meant, and lists all.
 *
 * @example `unknownDataTypeText("float32") // "unknown data type 'float32': did you mean 'FP32'? The data types are BOOL, ..."`
 */
export function unknownDataTypeText(name: unknown): string {
  const meant = typeof name === "string" ? meantDataType(name) : undefined;
  const question = meant === undefined ? "" : `did you mean '${meant}'? `;
  return `unknown data type '${String(name)}': ${question}The data types are ${DATA_TYPES.join(", ")}`;
}

function meantDataType(name: string): string | undefined {
  // `np.float32`, `torch.float32`, `tensor(float)` and `TYPE_FP32` name the type at the end.
  const bare = name.toLowerCase().replace(/^(?:[a-z]+\.|tensor\(|type_)|\)$/g, "");
  const [, letters, bits] = /^([a-z]+)(8|16|32|64)(?:_t|array)?$/.exec(bare) ?? [];
  const known = Object.hasOwn(FOREIGN_NAMES, bare) ? FOREIGN_NAMES[bare] : undefined;
  if (known !== undefined) return known;
  if (letters !== undefined) {
    const type = `${LETTERS[letters] ?? letters.toUpperCase()}${bits}`;
    if ((DATA_TYPES as readonly string[]).includes(type)) return type;
  }
  return closestName(bare, DATA_TYPES);
}
