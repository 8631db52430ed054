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
