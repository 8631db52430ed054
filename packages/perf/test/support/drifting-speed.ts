import type { Random } from "../../src/data/random.js";

/** Normally distributed to a good approximation, with a deviation of 1. */
export function normal(random: Random): number {
  let sum = 0;
  for (let i = 0; i < 12; i++) sum += random.uniform();
  return sum - 6;
}

/** Speed during a share of a measurement. */
export type Speed = (share: number) => number;

/** Speed of a machine whose measurements are off by a factor of `1 + deviation`, each part by itself. */
export function noisySpeed(random: Random, deviation: number): Speed {
  return (share) => Math.exp((deviation / Math.sqrt(share)) * normal(random));
}

/** Speed of a machine that wanders by 20%: a measurement resembles the one before it. */
export function wanderingSpeed(random: Random): Speed {
  const noise = noisySpeed(random, 0.04);
  let log = 0.2 * normal(random);
  return (share) => {
    const kept = 0.85 ** share;
    log = kept * log + 0.2 * Math.sqrt(1 - kept ** 2) * normal(random);
    return Math.exp(log) * noise(share);
  };
}

/** Speed of a machine that is 1.7 times faster for some measurements, as one with a turbo or busy neighbours is. */
export function steppingSpeed(random: Random): Speed {
  const noise = noisySpeed(random, 0.04);
  let isFast = random.uniform() < 0.5;
  return (share) => {
    if (random.uniform() > 0.88 ** share) isFast = !isFast;
    return (isFast ? 1.7 : 1) * noise(share);
  };
}
