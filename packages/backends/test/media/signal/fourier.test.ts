import { describe, expect, it } from "vitest";
import { FourierTransform, transformFactors } from "../../../src/media/fourier-transform.js";
import { difference } from "../support/fixtures.js";

/** The transform by its definition. */
function plain(real: Float64Array, imaginary: Float64Array) {
  const size = real.length;
  const sums = Array.from({ length: size }, (_, k) => {
    let [a, b] = [0, 0];
    for (let i = 0; i < size; i++) {
      const angle = (-2 * Math.PI * ((i * k) % size)) / size;
      a += real[i]! * Math.cos(angle) - imaginary[i]! * Math.sin(angle);
      b += real[i]! * Math.sin(angle) + imaginary[i]! * Math.cos(angle);
    }
    return [a, b] as const;
  });
  return { real: sums.map(([a]) => a), imaginary: sums.map(([, b]) => b) };
}

describe("a Fourier transform", () => {
  it.each([1, 2, 3, 4, 6, 8, 15, 31, 64, 77, 100, 360, 400, 512])(
    "of %d values follows the definition",
    (size) => {
      const transform = new FourierTransform(size);
      // Twice, because the arrays change their roles.
      for (const shift of [0, 1]) {
        const real = Float64Array.from({ length: size }, (_, i) => Math.sin(i * i + shift));
        const imaginary = Float64Array.from({ length: size }, (_, i) => Math.cos(3 * i + shift));
        for (let i = 0; i < size; i++) transform.values.set([real[i]!, imaginary[i]!], 2 * i);
        transform.transform();
        const wanted = plain(real, imaginary);
        const values = [...transform.values];
        expect(
          difference(
            values.filter((_, i) => i % 2 === 0),
            wanted.real,
          ).largest,
        ).toBeLessThan(1e-10);
        expect(
          difference(
            values.filter((_, i) => i % 2 === 1),
            wanted.imaginary,
          ).largest,
        ).toBeLessThan(1e-10);
      }
    },
  );

  it("of a size with a large prime factor is refused", () => {
    expect(transformFactors(37)).toBeUndefined();
    expect(() => new FourierTransform(2 * 37)).toThrow("expected a product of primes up to 31, got 74");
  });
});
