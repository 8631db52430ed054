/*
 * Math.exp and Math.tanh may differ in the last digit from one JavaScript engine to the next. Training repeats
 * such a difference thousands of times, so the functions here use additions, multiplications and divisions
 * only: IEEE 754 fixes their results to the last bit, and the same data gives the same model everywhere.
 */

/** Bound for exponents: e^-50 is lost next to 1 in a double, so a softmax or a tanh needs no larger range. */
const LARGEST_EXPONENT = 50;
const TAYLOR_TERMS = 12;

/** e^x with a relative error below 1e-12 for x from -50 to 50; values outside are clamped. */
export function exp(x: number): number {
  const clamped = Math.max(-LARGEST_EXPONENT, Math.min(LARGEST_EXPONENT, x));
  let power = 1;
  for (let term = TAYLOR_TERMS; term > 0; term--) power = 1 + (clamped / 256 / term) * power;
  for (let squaring = 0; squaring < 8; squaring++) power *= power; // from e^(x / 256) to e^x
  return power;
}

/** Hyperbolic tangent of x. */
export function tanh(x: number): number {
  const decay = exp(-2 * Math.abs(x));
  const magnitude = (1 - decay) / (1 + decay);
  return x < 0 ? -magnitude : magnitude;
}
