import { closestName } from "./closest-name.js";
import { toBfloat16, toFloat16 } from "./half-float.js";

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
