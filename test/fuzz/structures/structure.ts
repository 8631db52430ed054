import type { SeededRandom } from "../../support/seeded-random.js";

/** What a change of an input may use. */
export interface MutationSource {
  readonly random: SeededRandom;
  /** Another input of the corpus, whose parts may be taken. */
  readonly other: Uint8Array;
  /** A word of the target. */
  token(): Uint8Array;
}

/** The form of inputs: a change keeps it, so that inputs pass the first checks of a parser. */
export interface Structure {
  /** Makes a changed copy. The input may have any form. */
  mutate(input: Uint8Array, source: MutationSource): Uint8Array;
}

/** Numbers at which parsers break. */
export const BORDERS: readonly bigint[] = [
  ...[
    0n,
    1n,
    2n,
    3n,
    7n,
    8n,
    15n,
    16n,
    31n,
    32n,
    63n,
    64n,
    100n,
    127n,
    128n,
    255n,
    256n,
    1000n,
    1024n,
    4096n,
  ],
  ...[15, 16, 24, 31, 32, 40, 52, 53, 62, 63, 64].flatMap((bits) => {
    const power = 1n << BigInt(bits);
    return [power - 1n, power, power + 1n];
  }),
];

/** A border number, negative at times. */
export function border(random: SeededRandom): bigint {
  const number = BORDERS[random.below(BORDERS.length)]!;
  return random.chance(0.2) ? -number : number;
}

/** An element of a list that is not empty. */
export function pick<T>(random: SeededRandom, list: readonly T[]): T {
  return list[random.below(list.length)]!;
}
