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

/** A class of such arrays. */
export interface HalfArrayClass {
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

/** Numbers are their own elements. */
export const sameNumber = (value: number) => value;

/** The class `Float16Array` of the run time, if it has one. */
export const NativeFloat16Array = (globalThis as { readonly Float16Array?: unknown }).Float16Array as
  | Uint16ArrayConstructor
  | undefined;

/** The arrays of FP16 where the run time has `Float16Array`. */
export const Float16Numbers =
  NativeFloat16Array &&
  class Float16Numbers extends halfArrays(
    NativeFloat16Array,
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

/** True for elements of FP16 or BF16 as callbacks and callers get them, bits or not. */
export function isHalfArray(elements: object): elements is Float16Bits | BFloat16Bits {
  return "toFloat32" in elements;
}
