import fc from "fast-check";

/** Probabilities of the likeliest units of frames. */
export interface RandomFrames {
  readonly logProbs: Float32Array;
  readonly ids: Int32Array;
  readonly frames: number;
  readonly width: number;
}

/** Frames over a few units, in which blanks and repetitions are frequent, as a network gives them. */
export function framesOf(units: number, width: number): fc.Arbitrary<RandomFrames> {
  const frame = fc.record({
    ids: fc.shuffledSubarray([...Array(units).keys()], { minLength: width, maxLength: width }),
    weights: fc.array(fc.double({ min: 0.0001, max: 1, noNaN: true }), {
      minLength: width,
      maxLength: width,
    }),
    peak: fc.integer({ min: 0, max: 8 }),
  });
  return fc.array(frame, { minLength: 0, maxLength: 60 }).map((all) => {
    const logProbs = new Float32Array(all.length * width);
    const ids = new Int32Array(all.length * width);
    for (const [i, one] of all.entries()) {
      const weights = one.weights
        .toSorted((a, b) => b - a)
        .map((weight, j) => (j === 0 ? weight * 3 ** one.peak : weight));
      const sum = weights.reduce((total, weight) => total + weight, 0);
      logProbs.set(
        weights.map((weight) => Math.log(weight / sum)),
        i * width,
      );
      ids.set(one.ids, i * width);
    }
    return { logProbs, ids, frames: all.length, width };
  });
}
