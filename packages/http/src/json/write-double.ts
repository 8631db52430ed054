import { powersOfTen, productError } from "./decimal.js";

/*
 * Writes doubles as text without a string for each. `v * 10^k` has 17 digits before the dot. Two doubles hold it
 * exactly, because 10^k is a double up to 10^22. The decimals within half a unit of the last bit of `v` read back as
 * `v`. JavaScript, and so Triton, prints the shortest of them, and of several the nearest:
 *
 *   0.12340000271797180  * 10^17 = 12340000271797180.175...  half a unit: 0.69
 *                                  12340000271797180          17 digits
 *                                  1234000027179718           16 digits: 0.175 away, taken
 *
 * Other numbers (whole ones, few digits, ties, very large and very small ones) are left to the caller.
 */

const SMALLEST = 1e-6;
const LARGEST = 1e15;
/** Digits of the whole. It is split into two halves, each an exact 32-bit integer. */
const DIGITS = 17;
const HALF = 1e8;
/** Far above the error of a comparison. In nearly all cases, far below a difference that matters. */
const DOUBT = 1e-6;
const ZERO = 0x30;
const DOT = 0x2e;
const MINUS = 0x2d;

/** Most bytes that {@link writeDouble} writes. */
export const MAX_DOUBLE_BYTES = 26;

/** `0000` to `9999`. */
const quads = new Uint8Array(40_000);
for (let i = 0; i < 10_000; i++) quads.set(Buffer.from(String(i).padStart(4, "0")), 4 * i);

const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);
/** Half a unit of the last bit of doubles by exponent, from 2^-20 to 2^50. */
const FIRST_EXPONENT = -20;
const halfUnits = Float64Array.from({ length: 71 }, (_, i) => 2 ** (i + FIRST_EXPONENT - 53));

/**
 * Writes a double at `at`, where there must be room. Returns the end of its text, or -1 for a number that is left to
 * the caller.
 */
export function writeDouble(bytes: Uint8Array, at: number, value: number): number {
  const size = value < 0 ? -value : value;
  if (!(size >= SMALLEST && size < LARGEST) || size === Math.floor(size)) return -1;
  double[0] = size;
  const high = words[1]!;
  // Below a power of two, doubles are closer to each other than above it.
  if (words[0] === 0 && (high & 0xf_ffff) === 0) return -1;
  const exponent = (high >>> 20) - 1023;
  let magnitude = Math.floor(exponent * 0.30103);
  let scale = powersOfTen[DIGITS - 1 - magnitude]!;
  let product = size * scale;
  if (product >= 1e17) {
    magnitude++;
    scale = powersOfTen[DIGITS - 1 - magnitude]!;
    product = size * scale;
  }
  if (!(product >= 1e16 && product < 1e17 - 64)) return -1;
  const reach = halfUnits[exponent - FIRST_EXPONENT]! * scale;
  let first = Math.floor(product / HALF);
  // The remainder after the first half: exact up to here.
  const rest = product - first * HALF + productError(size, scale, product);
  let second = Math.round(rest);
  let digits = DIGITS;
  let step = 1;
  for (;;) {
    const wider = step * 10;
    const shorter = Math.round(rest / wider) * wider;
    const away = Math.abs(shorter - rest);
    if (away > reach + DOUBT) break;
    if (away > reach - DOUBT || wider === HALF) return -1;
    second = shorter;
    step = wider;
    digits--;
  }
  if (Math.abs(Math.abs(second - rest) - step / 2) < DOUBT) return -1;
  if (second >= HALF) {
    first++;
    second -= HALF;
  } else if (second < 0) {
    first--;
    second += HALF;
  }
  let to = at;
  if (value < 0) bytes[to++] = MINUS;
  if (magnitude < 0) {
    bytes[to++] = ZERO;
    bytes[to++] = DOT;
    for (let zeros = -1 - magnitude; zeros > 0; zeros--) bytes[to++] = ZERO;
    writeDigits(bytes, to, first, second);
    return to + digits;
  }
  // One byte further, until the digits before the dot are moved back.
  writeDigits(bytes, to + 1, first, second);
  for (let i = 0; i <= magnitude; i++) bytes[to + i] = bytes[to + i + 1]!;
  bytes[to + magnitude + 1] = DOT;
  return to + digits + 1;
}

/** Writes nine digits and eight. */
function writeDigits(bytes: Uint8Array, at: number, first: number, second: number): void {
  const lead = (first / HALF) | 0;
  bytes[at] = ZERO + lead;
  const nine = (first - lead * HALF) | 0;
  const eight = second | 0;
  let quad = (nine / 10_000) | 0;
  writeQuad(bytes, at + 1, quad);
  writeQuad(bytes, at + 5, nine - quad * 10_000);
  quad = (eight / 10_000) | 0;
  writeQuad(bytes, at + 9, quad);
  writeQuad(bytes, at + 13, eight - quad * 10_000);
}

function writeQuad(bytes: Uint8Array, at: number, quad: number): void {
  const from = quad * 4;
  bytes[at] = quads[from]!;
  bytes[at + 1] = quads[from + 1]!;
  bytes[at + 2] = quads[from + 2]!;
  bytes[at + 3] = quads[from + 3]!;
}
