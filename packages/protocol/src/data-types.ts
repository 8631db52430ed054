import { closestName } from "./closest-name.js";
import {
  BFloat16Bits,
  Float16Bits,
  type Float16Elements,
  Float16Numbers,
  type Float16Values,
  float32ToBfloat16,
  float32ToFloat16,
  fromBfloat16,
  fromFloat16,
  type HalfArrayClass,
  isHalfArray,
  NativeFloat16Array,
  sameNumber,
  toBfloat16,
  toFloat16,
} from "./half-floats.js";

/** A data type of the v2 protocol. `BYTES` is Triton's `TYPE_STRING`. */
export type DataType = FixedDataType | "BYTES";

/** A data type whose elements have a fixed size. */
export type FixedDataType = keyof FixedElements;

/**
 * The JavaScript container for the elements of a tensor of data type `D`, as callbacks and callers see it. `BOOL` is one
 * byte of 0 or 1. `BYTES` is one byte array per element.
 */
export type ElementsOf<D extends DataType> = D extends keyof FixedElements ? FixedElements[D] : Uint8Array[];

/** The containers that can be given for a tensor of data type `D`. Those of FP32 are rounded to FP16 or BF16. */
export type GivenElementsOf<D extends DataType> =
  | ElementsOf<D>
  | (D extends "FP16" ? Float32Array | Float16Values : D extends "BF16" ? Float32Array : never);

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
  FP16: Float16Elements;
  BF16: BFloat16Bits;
  FP32: Float32Array;
  FP64: Float64Array;
}

/** Any array that can hold a tensor of a fixed-size data type. Inside the library, FP16 and BF16 are a `Uint16Array`. */
export type TypedArray = Exclude<FixedElements[keyof FixedElements], Float16Elements | BFloat16Bits>;

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

/** Conversions of a floating-point type. */
interface FloatForm {
  /** The number that an element stands for. */
  readonly toNumber: (element: number) => number;
  /** The element that is nearest to a number. */
  readonly fromNumber: (value: number) => number;
  /** Set if the elements have 16 bits. */
  readonly half?: HalfForm;
}

/** The arrays of FP16 and BF16 outside of the library, which has the bits in a `Uint16Array`. */
interface HalfForm {
  /** Class of the arrays that callbacks and callers get. */
  readonly Data: HalfArrayClass;
  /** Classes whose arrays are taken as they are. */
  readonly taken: readonly (abstract new (
    ...given: never[]
  ) => unknown)[];
  readonly ofFloat32: (values: Float32Array) => Uint16Array;
}

class DataTypeRow {
  /** Size of an element in bytes. */
  readonly byteSize: number;

  /**
   * @param convert converts a scalar to an element; undefined for a scalar that does not fit
   * @param expected the scalars that fit, for errors
   * @param float set for a floating-point type
   */
  constructor(
    readonly name: FixedDataType,
    readonly array: TypedArrayConstructor,
    readonly convert: Converter,
    readonly expected: string,
    readonly float: FloatForm | undefined = undefined,
  ) {
    this.byteSize = array.BYTES_PER_ELEMENT;
  }
}

/** The row of a floating-point type. */
function floats(name: FixedDataType, array: TypedArrayConstructor, float: FloatForm): DataTypeRow {
  const convert: Converter = (scalar) => (typeof scalar === "number" ? float.fromNumber(scalar) : undefined);
  return new DataTypeRow(name, array, convert, "a number", float);
}

const NUMBERS: FloatForm = { toNumber: sameNumber, fromNumber: sameNumber };

/** The data types with elements of a fixed size, in the order of Triton's documentation. */
const ROWS: readonly DataTypeRow[] = [
  new DataTypeRow(
    "BOOL",
    Uint8Array,
    (scalar) =>
      typeof scalar === "boolean" ? Number(scalar) : scalar === 0 || scalar === 1 ? scalar : undefined,
    "a boolean, 0 or 1",
  ),
  new DataTypeRow("UINT8", Uint8Array, integer(0, 0xff), "an integer in [0, 255]"),
  new DataTypeRow("UINT16", Uint16Array, integer(0, 0xffff), "an integer in [0, 65535]"),
  new DataTypeRow("UINT32", Uint32Array, integer(0, 0xffff_ffff), "an integer in [0, 2^32)"),
  new DataTypeRow(
    "UINT64",
    BigUint64Array,
    bigInteger(0n, 0xffff_ffff_ffff_ffffn),
    "a bigint or safe integer in [0, 2^64)",
  ),
  new DataTypeRow("INT8", Int8Array, integer(-0x80, 0x7f), "an integer in [-128, 127]"),
  new DataTypeRow("INT16", Int16Array, integer(-0x8000, 0x7fff), "an integer in [-32768, 32767]"),
  new DataTypeRow("INT32", Int32Array, integer(-0x8000_0000, 0x7fff_ffff), "an integer in [-2^31, 2^31)"),
  new DataTypeRow(
    "INT64",
    BigInt64Array,
    bigInteger(-0x8000_0000_0000_0000n, 0x7fff_ffff_ffff_ffffn),
    "a bigint or safe integer in [-2^63, 2^63)",
  ),
  floats("FP16", Uint16Array, {
    toNumber: fromFloat16,
    fromNumber: toFloat16,
    half: {
      Data: Float16Numbers ?? Float16Bits,
      taken: NativeFloat16Array === undefined ? [Float16Bits] : [Float16Bits, NativeFloat16Array],
      ofFloat32: float32ToFloat16,
    },
  }),
  floats("BF16", Uint16Array, {
    toNumber: fromBfloat16,
    fromNumber: toBfloat16,
    half: { Data: BFloat16Bits, taken: [BFloat16Bits], ofFloat32: float32ToBfloat16 },
  }),
  floats("FP32", Float32Array, NUMBERS),
  floats("FP64", Float64Array, NUMBERS),
];

/** All data types, in the order of Triton's documentation. */
export const DATA_TYPES: readonly DataType[] = [...ROWS.map(({ name }) => name), "BYTES"];

/** A map, because V8 takes longer to find a member of an object whose name varies. */
const rows = new Map<DataType, DataTypeRow>(ROWS.map((row) => [row.name, row]));

const byName = new Map<unknown, DataType>(DATA_TYPES.map((datatype) => [datatype, datatype]));

/** True if `value` names a data type of the v2 protocol. */
export function isDataType(value: unknown): value is DataType {
  return byName.has(value);
}

/**
 * The data type of a name that was received, `undefined` for an unknown one. It is the string of the table: V8 compares
 * it, and finds members by it, faster than an equal string of a message.
 */
export function dataTypeNamed(name: string): DataType | undefined {
  return byName.get(name);
}

/** Size of one element in bytes; 0 for `BYTES`, whose elements differ in size. */
export function elementByteSize(datatype: DataType): number {
  return rows.get(datatype)?.byteSize ?? 0;
}

/** The typed array that holds elements of `datatype`. */
export function typedArrayFor(datatype: FixedDataType): TypedArrayConstructor {
  return rows.get(datatype)!.array;
}

const halfForm = (datatype: DataType): HalfForm | undefined => rows.get(datatype)?.float?.half;

/** The class of the arrays of FP16 or BF16 that callbacks and callers get; undefined for other data types. */
export const halfArrayFor = (datatype: DataType): HalfArrayClass | undefined => halfForm(datatype)?.Data;

/**
 * The elements of a tensor as callbacks and callers get them: those of FP16 and BF16 in the array that tells what it
 * holds, over the same memory.
 */
export function shownElements(datatype: DataType, elements: Elements): Elements {
  const Data = halfArrayFor(datatype);
  if (Data === undefined || elements instanceof Data || Array.isArray(elements)) return elements;
  return new Data(elements.buffer, elements.byteOffset, elements.length);
}

/** True for an array whose class is one of a data type. A `Uint16Array` does not tell that it holds FP16 or BF16. */
function isArrayOf(datatype: FixedDataType, value: unknown): boolean {
  const half = halfForm(datatype);
  if (half !== undefined) return half.taken.some((Taken) => value instanceof Taken);
  return value instanceof rows.get(datatype)!.array && !isHalfArray(value);
}

/** The data types whose arrays have the class of a value, in the order of {@link DATA_TYPES}. */
export function arrayDatatypes(value: unknown): readonly FixedDataType[] {
  return ROWS.flatMap(({ name }) => (isArrayOf(name, value) ? [name] : []));
}

/**
 * The elements that an array has as a tensor of a data type, over the same memory; numbers are rounded to FP16 or BF16.
 * Undefined for an array of another data type.
 */
export function takenElements(datatype: FixedDataType, given: TypedArray): TypedArray | undefined {
  const half = halfForm(datatype);
  if (half !== undefined && given instanceof Float32Array)
    return takenElements(datatype, half.ofFloat32(given));
  if (!isArrayOf(datatype, given)) return undefined;
  return half === undefined ? given : new Uint16Array(given.buffer, given.byteOffset, given.length);
}

/** Names the arrays that {@link takenElements} takes, for errors. */
export function takenArrays(datatype: FixedDataType): string {
  if (halfForm(datatype) === undefined) return typedArrayFor(datatype).name;
  return `numbers, Float32Array or ${datatype.replace(/FP?/, "Float")}Bits`;
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

/** Converts a scalar to an element of a data type; undefined for a scalar that does not fit. */
export const scalarConverter = (datatype: FixedDataType): Converter => rows.get(datatype)!.convert;

/** The scalars that fit a data type, for errors. */
export const expectedScalars = (datatype: FixedDataType): string => rows.get(datatype)!.expected;

/** True for data types whose elements have no form in JSON: they travel as bytes. */
export function isOnlyBinary(datatype: DataType): boolean {
  return halfForm(datatype) !== undefined;
}

/** Returns a function that gives the number for an element of a floating-point type; undefined for other types. */
export function floatReader(datatype: DataType): ((element: number) => number) | undefined {
  return rows.get(datatype)?.float?.toNumber;
}

/** Returns a function that gives the nearest element of a floating-point type to a number; undefined for other types. */
export function floatWriter(datatype: DataType): ((value: number) => number) | undefined {
  return rows.get(datatype)?.float?.fromNumber;
}

/** Numbers in `model_config.proto` and ONNX's `TensorProto`. Not in the table, so that browsers' bundles omit them. */
const numbers: Readonly<Record<DataType, { readonly config: number; readonly onnx: number }>> = {
  BOOL: { config: 1, onnx: 9 },
  UINT8: { config: 2, onnx: 2 },
  UINT16: { config: 3, onnx: 4 },
  UINT32: { config: 4, onnx: 12 },
  UINT64: { config: 5, onnx: 13 },
  INT8: { config: 6, onnx: 3 },
  INT16: { config: 7, onnx: 5 },
  INT32: { config: 8, onnx: 6 },
  INT64: { config: 9, onnx: 7 },
  FP16: { config: 10, onnx: 10 },
  BF16: { config: 14, onnx: 16 },
  FP32: { config: 11, onnx: 1 },
  FP64: { config: 12, onnx: 11 },
  BYTES: { config: 13, onnx: 8 },
};

/** The names of all data types in `model_config.proto`, at the index of their numbers there. */
export function configDataTypes(): string[] {
  const names = ["TYPE_INVALID"];
  for (const datatype of DATA_TYPES) names[numbers[datatype].config] = toConfigDataType(datatype);
  return names;
}

/** ONNX's number of a data type. */
export const toOnnxType = (datatype: DataType): number => numbers[datatype].onnx;

/** The data type for a number of ONNX; undefined if the protocol has none. */
export const fromOnnxType = (onnx: number): DataType | undefined =>
  DATA_TYPES.find((datatype) => toOnnxType(datatype) === onnx);

/** The name of a data type in the JavaScript API of ONNX Runtime, such as `float32`. */
export const toOrtType = (datatype: DataType): string =>
  datatype === "BYTES" ? "string" : datatype.toLowerCase().replace("fp", "float");

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

/** Ends of the file names of graphs by precision, as transformers.js names them. */
const ENDS = {
  fp32: "",
  fp16: "_fp16",
  q8: "_quantized",
  int8: "_int8",
  uint8: "_uint8",
  q4: "_q4",
  q4f16: "_q4f16",
  bnb4: "_bnb4",
} as const;

/** Precision of a graph, as in transformers.js. */
export type DecoderDtype = keyof typeof ENDS;

export const GRAPH_DTYPES = Object.keys(ENDS) as readonly DecoderDtype[];

/** Precisions by the kind of device, in the order in which it prefers them: first those that are fast and exact there. */
export const PREFERRED_DTYPES: {
  readonly cpu: readonly DecoderDtype[];
  readonly gpu: readonly DecoderDtype[];
} = {
  cpu: ["fp32", "q4", "q8", "int8", "uint8", "bnb4", "fp16", "q4f16"],
  gpu: ["fp16", "fp32", "q4f16", "q4", "bnb4", "q8", "int8", "uint8"],
};

/**
 * Places of a graph in a directory of Hugging Face, the first choice first.
 *
 * @param stems names of the graph without its precision: `model`
 */
export function graphPaths(stems: readonly string[], dtype: DecoderDtype): string[] {
  return stems.flatMap((stem) => [`${stem}${ENDS[dtype]}.onnx`, `onnx/${stem}${ENDS[dtype]}.onnx`]);
}
