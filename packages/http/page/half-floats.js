/* FP16 and BF16, which JSON cannot carry: from numbers to bits and back. */

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

const bitsOf = (value) => {
  float[0] = value;
  return bits[0];
};

/** Rounds to the nearest, ties to even. */
export function toBf16(value) {
  const all = bitsOf(value);
  if (Number.isNaN(value)) return 0x7fc0;
  return ((all + 0x7fff + ((all >>> 16) & 1)) >>> 16) & 0xffff;
}

export function fromBf16(half) {
  bits[0] = half << 16;
  return float[0];
}

/** Rounds to the nearest, ties to even. */
export function toFp16(value) {
  const all = bitsOf(value);
  const sign = (all >>> 16) & 0x8000;
  if (Number.isNaN(value)) return 0x7e00;
  const size = Math.abs(float[0]);
  if (size >= 65520) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | roundEven(size / 2 ** -24);
  const exponent = Math.floor(Math.log2(size));
  const scaled = roundEven((size / 2 ** exponent) * 1024);
  return sign | (((exponent + 14) << 10) + scaled);
}

function roundEven(value) {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

export function fromFp16(half) {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
