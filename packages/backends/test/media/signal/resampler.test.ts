import { describe, expect, it } from "vitest";
import { Resampler } from "../../../src/media/audio-preparer.js";

const tone = (hertz: number, rate: number, count: number) =>
  Float32Array.from({ length: count }, (_, i) => 0.8 * Math.sin((2 * Math.PI * hertz * i) / rate + 0.3));

/** Largest difference away from the ends, where a signal meets the silence outside. */
function inside(got: Float32Array, wanted: Float32Array, margin: number): number {
  let largest = 0;
  for (let i = margin; i < got.length - margin; i++)
    largest = Math.max(largest, Math.abs(got[i]! - wanted[i]!));
  return largest;
}

describe("a resampled tone", () => {
  it.each([
    [48_000, 16_000],
    [44_100, 16_000],
    [22_050, 16_000],
    [8_000, 16_000],
    [16_000, 44_100],
    [44_101, 16_000],
    [16_001, 48_000],
  ])("from %d to %d Hz is the tone at the new rate, to 1e-4", (from, to) => {
    const resampler = new Resampler(from, to);
    const highest = 0.45 * Math.min(from, to);
    for (const hertz of [50, highest / 3, highest]) {
      const got = resampler.resample(tone(hertz, from, from / 4));
      expect(got).toHaveLength(Math.ceil((Math.floor(from / 4) * to) / from));
      expect(inside(got, tone(hertz, to, got.length), 600)).toBeLessThan(1e-4);
    }
  });

  it("beyond the new Nyquist frequency is 80 dB down", () => {
    const resampler = new Resampler(48_000, 16_000);
    for (const hertz of [8_200, 12_000, 20_000]) {
      const got = resampler.resample(tone(hertz, 48_000, 12_000));
      expect(inside(got, new Float32Array(got.length), 600)).toBeLessThan(0.8e-4);
    }
  });

  it("keeps a constant, and an empty signal is empty", () => {
    const resampler = new Resampler(44_100, 16_000);
    const got = resampler.resample(new Float32Array(20_000).fill(0.5));
    expect(inside(got, new Float32Array(got.length).fill(0.5), 100)).toBeLessThan(1e-6);
    expect(resampler.resample(new Float32Array())).toHaveLength(0);
  });
});
