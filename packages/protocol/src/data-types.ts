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

/*
 * The loops below work on the bits of whole arrays. They leave values that are rare to the functions above: a call for
 * each element, and a number on its way through an array of one, take several times as long.
 */

/** Converts FP16 bits to numbers. */
export function float16ToFloat32(halves: Uint16Array): Float32Array {
  const numbers = new Float32Array(halves.length);
  const words = new Int32Array(numbers.buffer);
  for (let i = 0; i < halves.length; i++) {
    const half = halves[i]!;
    const exponent = half & 0x7c00;
    if (exponent !== 0 && exponent !== 0x7c00)
      words[i] = ((half & 0x8000) << 16) | (((half & 0x7fff) << 13) + 0x3800_0000);
    else numbers[i] = fromFloat16(half);
  }
  return numbers;
}

/** Converts numbers to FP16 bits. */
export function float32ToFloat16(values: ArrayLike<number>): Float16Bits {
  const words = wordsOf(values);
  if (words === undefined) return new Float16Bits(Array.from(values, toFloat16));
  const halves = new Float16Bits(words.length);
  for (let i = 0; i < words.length; i++) {
    const x = words[i]!;
    const sign = (x >>> 16) & 0x8000;
    const magnitude = x & 0x7fff_ffff;
    if (magnitude >= 0x3880_0000 && magnitude < 0x4780_0000)
      halves[i] = sign | ((magnitude + 0xfff + ((magnitude >>> 13) & 1) - 0x3800_0000) >>> 13);
    else halves[i] = magnitude === 0 ? sign : toFloat16(values[i]!);
  }
  return halves;
}

/** Converts BF16 bits to numbers. */
export function bfloat16ToFloat32(halves: Uint16Array): Float32Array {
  const words = new Int32Array(halves.length);
  for (let i = 0; i < halves.length; i++) words[i] = halves[i]! << 16;
  return new Float32Array(words.buffer);
}

/** Converts numbers to BF16 bits. */
export function float32ToBfloat16(values: ArrayLike<number>): BFloat16Bits {
  const words = wordsOf(values);
  if (words === undefined) return new BFloat16Bits(Array.from(values, toBfloat16));
  const halves = new BFloat16Bits(words.length);
  for (let i = 0; i < words.length; i++) {
    const x = words[i]!;
    if ((x & 0x7fff_ffff) <= 0x7f80_0000) halves[i] = (x + 0x7fff + ((x >>> 16) & 1)) >>> 16;
    else halves[i] = toBfloat16(values[i]!);
  }
  return halves;
}

/** The bits of an array of FP32; undefined for other numbers. */
function wordsOf(values: ArrayLike<number>): Int32Array | undefined {
  if (!(values instanceof Float32Array)) return undefined;
  return new Int32Array(values.buffer, values.byteOffset, values.length);
}

/** Members that the arrays of FP16 and BF16 have besides those of typed arrays. The `ndarray` package uses `get` and `set`. */
interface HalfMethods {
  /** The number of one element. */
  get(index: number): number;
  /** Copies elements, as any typed array does. */
  set(elements: ArrayLike<number>, offset?: number): void;
  /** Stores the number nearest to `value` as one element. */
  set(index: number, value: number): void;
  /** All elements as numbers, in memory of their own. */
  toFloat32(): Float32Array<ArrayBuffer>;
}

/** Members whose results have the class of their array. */
interface Parts {
  slice(start?: number, end?: number): this;
  subarray(start?: number, end?: number): this;
}

type HalfArray<Base> = Parts & Base & HalfMethods;

interface HalfArrayClass {
  new (length?: number): HalfArray<Uint16Array>;
  new (elements: ArrayLike<number>): HalfArray<Uint16Array>;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): HalfArray<Uint16Array>;
}

/** Key under which a class has its data type, for the compiler alone. */
declare const holds: unique symbol;

/** Derives a class with {@link HalfMethods} from one of typed arrays. The `ndarray` package asks for the tag. */
function halfArrays(
  Base: Uint16ArrayConstructor,
  tag: string,
  read: (element: number) => number,
  write: (value: number) => number,
  toFloat32: (elements: Uint16Array) => Float32Array,
): HalfArrayClass {
  class Halves extends Base {
    override get [Symbol.toStringTag](): never {
      return tag as never;
    }

    get(index: number): number {
      const element = this[index];
      return element === undefined ? element! : read(element);
    }

    override set(to: number | ArrayLike<number>, value?: number): void {
      if (typeof to === "number") this[to] = write(value!);
      else super.set(to, value);
    }

    toFloat32(): Float32Array {
      return toFloat32(this);
    }

    /** What a function makes of bits need not be bits, so the result is an array of the base class. */
    override map(make: (element: number, index: number, array: this) => number): Uint16Array<ArrayBuffer> {
      return Base.from(this, (element, i) => make(element, i, this));
    }
  }
  return Halves as unknown as HalfArrayClass;
}

/**
 * Elements of FP16 as their bits, for run times without `Float16Array`: `get` and `toFloat32` read them as numbers. Made
 * of an array or a buffer of bits, it says what they are.
 *
 * @example `new Float16Bits(buffer).toFloat32()`
 */
export class Float16Bits extends halfArrays(
  Uint16Array,
  "Float16Bits",
  fromFloat16,
  toFloat16,
  float16ToFloat32,
) {
  declare readonly [holds]: "FP16";
}

/** Elements of BF16 as their bits: `get` and `toFloat32` read them as numbers. */
export class BFloat16Bits extends halfArrays(
  Uint16Array,
  "BFloat16Bits",
  fromBfloat16,
  toBfloat16,
  bfloat16ToFloat32,
) {
  declare readonly [holds]: "BF16";
}

const sameNumber = (value: number) => value;

const Native = (globalThis as { readonly Float16Array?: unknown }).Float16Array as
  | Uint16ArrayConstructor
  | undefined;

/** The arrays of FP16 where the run time has `Float16Array`. */
const Float16Numbers =
  Native &&
  class Float16Numbers extends halfArrays(
    Native,
    "Float16Array",
    sameNumber,
    sameNumber,
    (elements) => new Float32Array(elements),
  ) {};

/** `Float16Array`, or its members where the compiler's library lacks it. */
export type Float16Values = typeof globalThis extends {
  readonly Float16Array: { readonly prototype: infer Values };
}
  ? Values
  : Omit<Uint16Array, typeof Symbol.toStringTag> & { readonly [Symbol.toStringTag]: "Float16Array" };

/**
 * The elements of an FP16 tensor as callbacks and callers see them: numbers in a `Float16Array` where the run time has
 * one (Node 24), else bits. `toFloat32()` gives the numbers of both.
 */
export type Float16Elements = Float16Bits | HalfArray<Float16Values>;

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
  /** True if the elements have no form in JSON. */
  readonly onlyBinary: boolean;
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

const NUMBERS: FloatForm = { toNumber: sameNumber, fromNumber: sameNumber, onlyBinary: false };

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
    onlyBinary: true,
    half: {
      Data: Float16Numbers ?? Float16Bits,
      taken: Native === undefined ? [Float16Bits] : [Float16Bits, Native],
      ofFloat32: float32ToFloat16,
    },
  }),
  floats("BF16", Uint16Array, {
    toNumber: fromBfloat16,
    fromNumber: toBfloat16,
    onlyBinary: true,
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
export function isArrayOf(datatype: FixedDataType, value: unknown): boolean {
  const half = halfForm(datatype);
  if (half !== undefined) return half.taken.some((Taken) => value instanceof Taken);
  return value instanceof rows.get(datatype)!.array && !isHalfArray(value);
}

/** True for elements of FP16 or BF16 as callbacks and callers get them, bits or not. */
export function isHalfArray(elements: object): elements is Float16Bits | BFloat16Bits {
  return "toFloat32" in elements;
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
  return rows.get(datatype)?.float?.onlyBinary === true;
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
