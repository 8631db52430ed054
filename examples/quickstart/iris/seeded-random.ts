/**
 * Makes a source of repeatable random numbers (mulberry32): equal seeds give equal sequences.
 *
 * @param seed - any integer; only its low 32 bits are used
 * @returns a function that gives the next number, at least 0 and below 1
 */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
