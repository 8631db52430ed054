import { randomInt } from "node:crypto";

/** Random numbers of one request: the same numbers for the same seed, on any machine. Algorithm sfc32. */
export class RandomGenerator {
  readonly #state: Uint32Array;

  /** @param seed a safe integer. @default a random one */
  constructor(seed: number = randomInt(2 ** 47)) {
    // Both halves, because a seed may be larger than 32 bits.
    this.#state = Uint32Array.of(seed, Math.floor(seed / 2 ** 32), 0x9e3779b9, 1);
    for (let i = 0; i < 15; i++) this.next();
  }

  /** The next number, from 0 to below 1. */
  next(): number {
    const state = this.#state;
    const [a, b, c, d] = state as unknown as [number, number, number, number];
    const sum = (a + b + d) >>> 0;
    state[0] = b ^ (b >>> 9);
    state[1] = c + (c << 3);
    state[2] = ((c << 21) | (c >>> 11)) + sum;
    state[3] = d + 1;
    return sum / 2 ** 32;
  }
}
