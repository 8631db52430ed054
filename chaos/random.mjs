/** Pseudo-random numbers, the same for the same seed (mulberry32). */
export class SeededRandom {
  #state;

  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /** A number in [0, 1). */
  next() {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `low` to `high`. */
  between(low, high) {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(probability) {
    return this.next() < probability;
  }

  /** One of the values. */
  pick(values) {
    return values[Math.floor(this.next() * values.length)];
  }

  /** Another series of numbers, which the numbers drawn here do not change. */
  fork(name) {
    let hash = this.#state;
    for (const character of name) hash = Math.imul(hash ^ character.codePointAt(0), 0x01000193);
    return new SeededRandom(hash);
  }
}
