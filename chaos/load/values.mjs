import { WrongAnswer } from "../oracle/journal.mjs";

/** A row of whole numbers, which floats of 32 bits represent exactly. */
export function row(random, size) {
  return Float32Array.from({ length: size }, () => random.between(0, 1_000_000));
}

/** @throws WrongAnswer unless the elements are those of the input times the factor */
export function checkMultiples(input, factor, elements, what = "answer") {
  if (elements?.length !== input.length)
    throw new WrongAnswer(`${what}: expected ${input.length} elements, got ${elements?.length}`);
  for (let i = 0; i < input.length; i++) {
    // Multiples of more than 24 bits are rounded.
    const expected = Math.fround(factor * input[i]);
    if (elements[i] !== expected)
      throw new WrongAnswer(`${what}: expected ${expected} at ${i}, got ${elements[i]}`);
  }
}

/** @throws WrongAnswer unless both are equal */
export function checkEqual(got, expected, what) {
  if (got !== expected) throw new WrongAnswer(`${what}: expected ${expected}, got ${got}`);
}
