import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  activationScale,
  dequantizeBlocks,
  dequantizeWeights,
  layoutOf,
  quantizeBlocks,
  quantizeWeights,
  roundEven,
  ValueHistogram,
} from "../../src/onnx-graph/quantization.js";

const float = fc.float({ noNaN: true, noDefaultInfinity: true, min: -1e6, max: 1e6 });
const tensor = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 6 }))
  .chain(([outer, channels, inner]) =>
    fc.record({
      layout: fc.constant({ outer, channels, inner }),
      weights: fc
        .array(float, { minLength: outer * channels * inner, maxLength: outer * channels * inner })
        .map((values) => Float32Array.from(values)),
    }),
  );

describe("quantised weights", () => {
  it("are at most half of their channel's scale away from the weights", () => {
    fc.assert(
      fc.property(tensor, fc.constantFrom(127 as const, 64 as const), ({ layout, weights }, limit) => {
        const quantized = quantizeWeights(weights, layout, limit)!;
        const back = dequantizeWeights(quantized, layout);
        const { channels, inner } = layout;
        for (let i = 0; i < weights.length; i++) {
          const scale = quantized.scales[Math.floor(i / inner) % channels]!;
          expect(Math.abs(quantized.values[i]!)).toBeLessThanOrEqual(limit);
          expect(Math.abs(back[i]! - weights[i]!)).toBeLessThanOrEqual(scale * 0.5001);
        }
      }),
    );
  });

  it("keep zeros, and the sign and the place of the largest weight of a channel", () => {
    fc.assert(
      fc.property(tensor, ({ layout, weights }) => {
        const { values } = quantizeWeights(weights, layout)!;
        weights.forEach((weight, i) => {
          if (weight === 0) expect(values[i]).toBe(0);
          else expect(Math.sign(values[i]!) * Math.sign(weight)).toBeGreaterThanOrEqual(0);
        });
      }),
    );
  });

  it("are the same for a channel, whatever the other channels hold", () => {
    const alone = quantizeWeights(Float32Array.of(1, -0.5, 0.25), layoutOf([3, 1], 1))!;
    const beside = quantizeWeights(Float32Array.of(1, 1e6, -0.5, 7, 0.25, -3), layoutOf([3, 2], 1))!;
    expect([...beside.values].filter((_, i) => i % 2 === 0)).toEqual([...alone.values]);
    expect(beside.scales[0]).toBe(alone.scales[0]);
  });

  it("do not exist for weights with NaN or infinity", () => {
    for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      const weights = Float32Array.of(1, wrong, 2, 3);
      expect(quantizeWeights(weights, layoutOf([4]))).toBeUndefined();
      expect(quantizeBlocks((row) => weights[row]!, 4, 1, 16)).toBeUndefined();
    }
  });

  it("divide by no zero: channels of zeros, and of the smallest numbers", () => {
    const weights = Float32Array.of(0, 0, 1e-45, -1e-45);
    const { values, scales } = quantizeWeights(weights, layoutOf([2, 2], 0))!;
    expect([...scales].every((scale) => scale > 0 && Number.isFinite(scale))).toBe(true);
    expect([...values]).toEqual([0, 0, 0, 0]);
  });
});

describe("blocks of 4 bits", () => {
  it("are at most 2.7 steps away from the weights, also in a block that is cut", () => {
    const matrix = fc
      .tuple(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: 4 }), fc.constantFrom(16, 32))
      .chain(([rows, columns, blockSize]) =>
        fc.record({
          shape: fc.constant({ rows, columns, blockSize }),
          weights: fc.array(float, { minLength: rows * columns, maxLength: rows * columns }),
        }),
      );
    fc.assert(
      fc.property(matrix, ({ shape: { rows, columns, blockSize }, weights }) => {
        const floats = Float32Array.from(weights);
        const at = (row: number, column: number) => floats[row * columns + column]!;
        const made = quantizeBlocks(at, rows, columns, blockSize)!;
        const back = dequantizeBlocks(made, rows, columns, blockSize);
        expect(made.packed.length).toBe((columns * made.blocks * blockSize) / 2);
        for (let row = 0; row < rows; row++) {
          for (let column = 0; column < columns; column++) {
            const scale = Math.abs(made.scales[column * made.blocks + Math.floor(row / blockSize)]!);
            // A scale of 3/4 ends 2.7 of its steps before the largest weight.
            const worst = 2.7 * scale + 1e-30;
            expect(Math.abs(back[row * columns + column]! - at(row, column))).toBeLessThanOrEqual(worst);
          }
        }
      }),
    );
  });

  it("have no larger square error than the scale that reaches the largest weight", () => {
    fc.assert(
      fc.property(fc.array(float, { minLength: 32, maxLength: 32 }), (values) => {
        const floats = Float32Array.from(values);
        const back = dequantizeBlocks(quantizeBlocks((row) => floats[row]!, 32, 1, 32)!, 32, 1, 32);
        const extreme = floats.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most), 0);
        const scale = Math.fround(extreme / -8);
        const plain = floats.map((value) =>
          scale === 0 ? 0 : scale * Math.min(7, Math.max(-8, roundEven(value / scale))),
        );
        const error = (other: Float32Array) =>
          floats.reduce((sum, value, i) => sum + (value - other[i]!) ** 2, 0);
        expect(error(back)).toBeLessThanOrEqual(error(plain) * 1.0001);
      }),
    );
  });
});

describe("the scale of a value", () => {
  it("covers the range and 0, and makes 0 a whole number", () => {
    fc.assert(
      fc.property(float, float, (a, b) => {
        const range = { min: Math.min(a, b), max: Math.max(a, b) };
        const { scale, zeroPoint } = activationScale(range);
        expect(Number.isInteger(zeroPoint) && zeroPoint >= 0 && zeroPoint <= 255).toBe(true);
        expect(scale).toBeGreaterThan(0);
        expect(scale * (0 - zeroPoint)).toBeLessThanOrEqual(Math.min(0, range.min) + scale);
        expect(scale * (255 - zeroPoint)).toBeGreaterThanOrEqual(Math.max(0, range.max) - scale);
      }),
    );
  });

  it("rounds halves to the even number, as QuantizeLinear does", () => {
    expect([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, 2.6].map(roundEven)).toEqual([-2, -2, 0, 0, 2, 2, 2, 3]);
  });
});

describe("calibration", () => {
  const sample = fc.array(float, { minLength: 1, maxLength: 60 });

  it("finds the same ranges in whatever order the values come, up to the width of a bin", () => {
    fc.assert(
      fc.property(sample, fc.constantFrom("min-max", "percentile", "entropy"), (values, method) => {
        const [forwards, backwards] = [new ValueHistogram(), new ValueHistogram()];
        for (const value of values) forwards.add([value]);
        backwards.add(values.toReversed());
        const [a, b] = [forwards.range(method), backwards.range(method)];
        const width = Math.max(...values.map(Math.abs)) / 64;
        if (method === "entropy") return;
        expect(Math.abs(a.min - b.min)).toBeLessThanOrEqual(width);
        expect(Math.abs(a.max - b.max)).toBeLessThanOrEqual(width);
      }),
    );
  });

  it("never finds a range beyond the values and 0, by any method", () => {
    fc.assert(
      fc.property(sample, fc.constantFrom("min-max", "percentile", "entropy"), (values, method) => {
        const histogram = new ValueHistogram();
        histogram.add(values);
        const { min, max } = histogram.range(method);
        expect(min).toBeGreaterThanOrEqual(Math.min(0, ...values));
        expect(max).toBeLessThanOrEqual(Math.max(0, ...values));
        expect(min).toBeLessThanOrEqual(max);
      }),
    );
  });

  it("cuts off a single value far away by percentile and entropy, but not by min-max", () => {
    const histogram = new ValueHistogram();
    const values = Array.from({ length: 20_000 }, (_, i) => Math.sin(i) * Math.cos(i / 7));
    histogram.add([...values, 1000]);
    expect(histogram.range("min-max").max).toBe(1000);
    expect(histogram.range("percentile", 99.9).max).toBeLessThan(3);
    expect(histogram.range("entropy").max).toBeLessThan(200);
  });

  it("ignores values that no range covers, and has the range 0 for none", () => {
    const histogram = new ValueHistogram();
    histogram.add([Number.NaN, Number.POSITIVE_INFINITY]);
    expect(histogram.range("entropy")).toEqual({ min: 0, max: 0 });
    histogram.add([2, Number.NaN, -1]);
    expect(histogram.range("min-max")).toEqual({ min: -1, max: 2 });
  });
});
