import type { Random } from "../../src/data/random.js";

/** Normally distributed to a good approximation, with a deviation of 1. */
export function normal(random: Random): number {
  let sum = 0;
  for (let i = 0; i < 12; i++) sum += random.uniform();
  return sum - 6;
}

/** Speed of a machine whose measurements are off by a share, each by itself. */
export function noisySpeed(random: Random, share: number): () => number {
  return () => Math.exp(share * normal(random));
}

/** Speed of a machine that wanders by 20%: a measurement resembles the one before it. */
export function wanderingSpeed(random: Random): () => number {
  const kept = 0.85;
  let log = 0.2 * normal(random);
  return () => {
    log = kept * log + 0.2 * Math.sqrt(1 - kept ** 2) * normal(random);
    return Math.exp(log + 0.04 * normal(random));
  };
}

/** Speed of a machine that is 1.7 times faster for some measurements, as one with a turbo or busy neighbours is. */
export function steppingSpeed(random: Random): () => number {
  let isFast = random.uniform() < 0.5;
  return () => {
    if (random.uniform() < 0.12) isFast = !isFast;
    return (isFast ? 1.7 : 1) * Math.exp(0.04 * normal(random));
  };
}
