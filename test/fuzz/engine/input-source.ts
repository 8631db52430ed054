import { SeededRandom } from "../../support/seeded-random.js";
import { bytes } from "../structures/bytes.js";
import { type MutationSource, pick } from "../structures/structure.js";
import type { FuzzTarget } from "./target.js";

const MAX_BYTES = 16 * 1024;
/** Most inputs that are kept, and most of their bytes. */
const MAX_KEPT = 5000;
const MAX_KEPT_BYTES = 32 << 20;

/** Makes inputs from those that reached new code. The same seed and the same kept inputs give the same inputs. */
export class InputSource {
  readonly #kept: Uint8Array[];
  readonly #random: SeededRandom;
  readonly #target: FuzzTarget;
  readonly #tokens: readonly Uint8Array[];
  #keptBytes = 0;

  constructor(target: FuzzTarget, seed: number) {
    this.#target = target;
    this.#random = new SeededRandom(seed);
    this.#kept = [...target.seeds];
    const tokens = (target.tokens ?? []).map((token) => Buffer.from(token));
    this.#tokens = tokens.length > 0 ? tokens : [Buffer.of(0)];
  }

  get kept(): number {
    return this.#kept.length;
  }

  get keptBytes(): number {
    return this.#keptBytes;
  }

  /** Keeps an input as a base of others. */
  keep(input: Uint8Array): void {
    if (this.#keptBytes + input.length > MAX_KEPT_BYTES) return;
    this.#keptBytes += input.length;
    if (this.#kept.length < MAX_KEPT) this.#kept.push(Uint8Array.from(input));
    else {
      const at = this.#target.seeds.length + this.#random.below(MAX_KEPT - this.#target.seeds.length);
      this.#keptBytes -= this.#kept[at]!.length;
      this.#kept[at] = Uint8Array.from(input);
    }
  }

  /** A new input: a kept one with one to eight changes. */
  next(): Uint8Array {
    const random = this.#random;
    const { structure = bytes, maxBytes = MAX_BYTES } = this.#target;
    const source: MutationSource = {
      random,
      other: this.#any(),
      token: () => Uint8Array.from(pick(random, this.#tokens)),
    };
    let input = this.#any();
    do {
      input = (random.chance(0.9) ? structure : bytes).mutate(input, source);
      if (input.length > maxBytes) input = input.subarray(0, maxBytes);
    } while (random.chance(0.4));
    return Uint8Array.from(input);
  }

  /** Any kept input: one that was kept lately or a good one more often. */
  #any(): Uint8Array {
    const { length } = this.#kept;
    const recent = Math.min(length, 32);
    const turn = this.#random.next();
    if (turn < 0.3) return this.#kept[length - 1 - this.#random.below(recent)]!;
    return this.#kept[this.#random.below(turn < 0.6 ? this.#target.seeds.length : length)]!;
  }
}
