import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Resampler } from "../../../src/media/audio-preparer.js";
import { FilterBanks, nextFrames, SILENT_BAND } from "../../../src/media/filter-banks.js";
import { SOURCE_HASH } from "../../../src/media/filter-banks-module.js";
import { FourierTransform, transformFactors } from "../../../src/media/fourier-transform.js";
import { difference } from "../support/fixtures.js";

interface Case {
  readonly name: string;
  readonly mels: number;
  readonly rate: number;
  readonly frames: number;
  readonly samples: string;
  readonly values: string;
}

const { cases } = JSON.parse(readFileSync(new URL("../fixtures/fbank.json", import.meta.url), "utf8")) as {
  readonly cases: readonly Case[];
};

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, "base64")).buffer;

function settingsOf({ mels, rate }: Pick<Case, "mels" | "rate">) {
  return { sampleRate: rate, frameLength: rate / 40, hopLength: rate / 100, mels, fMin: 20, fMax: rate / 2 };
}

const signalOf = ({ samples }: Case) =>
  Float32Array.from(new Int16Array(bytesOf(samples)), (x) => x / 2 ** 15);

describe("mel filter banks", () => {
  it.each(cases)("of $name are torchaudio's to 1e-4", (one) => {
    const banks = new FilterBanks(settingsOf(one));
    const signal = signalOf(one);
    expect(banks.framesOf(signal.length)).toBe(one.frames);
    const values = new Float32Array(one.frames * one.mels);
    banks.compute(signal, one.frames, values);
    const wanted = new Float32Array(bytesOf(one.values));
    expect(difference([...values], [...wanted]).largest).toBeLessThan(1e-4);
  });

  it("are of frames inside of the signal, perhaps none", () => {
    const banks = new FilterBanks(settingsOf({ mels: 80, rate: 16_000 }));
    expect([0, 1, 399, 400, 559, 560].map((samples) => banks.framesOf(samples))).toEqual([0, 0, 0, 1, 1, 2]);
  });
});

/** The filter banks of one frame by their definition, in triangles that are straight in mel. */
function plain(frame: Float32Array, rate: number, mels: number): number[] {
  const { length } = frame;
  const size = 2 ** Math.ceil(Math.log2(length));
  const scaled = Array.from(frame, (sample) => sample * 2 ** 15);
  const mean = scaled.reduce((sum, sample) => sum + sample, 0) / length;
  const window = (i: number) => (0.5 - 0.5 * Math.cos((2 * Math.PI * i) / (length - 1))) ** 0.85;
  const values = scaled.map(
    (sample, i) => (sample - mean - 0.97 * (scaled[Math.max(0, i - 1)]! - mean)) * window(i),
  );
  const powers = Array.from({ length: size / 2 }, (_, bin) => {
    let [a, b] = [0, 0];
    for (const [i, value] of values.entries()) {
      a += value * Math.cos((2 * Math.PI * bin * i) / size);
      b += value * Math.sin((2 * Math.PI * bin * i) / size);
    }
    return a * a + b * b;
  });
  const mel = (hertz: number) => 1127 * Math.log(1 + hertz / 700);
  const step = (mel(rate / 2) - mel(20)) / (mels + 1);
  return Array.from({ length: mels }, (_, band) => {
    const centre = mel(20) + (band + 1) * step;
    const energy = powers.reduce(
      (sum, power, bin) => sum + power * Math.max(0, 1 - Math.abs(mel((bin * rate) / size) - centre) / step),
      0,
    );
    return Math.log(Math.max(energy, 2 ** -23));
  });
}

describe("the module of filter banks", () => {
  it.each([2, 3, 4, 5, 7, 31, 200, 257, 400, 512, 1103])(
    "computes frames of %d samples by the definition",
    (frameLength) => {
      const rate = 16_000;
      const settings = { sampleRate: rate, frameLength, hopLength: 3, mels: 12, fMin: 20, fMax: rate / 2 };
      const banks = new FilterBanks(settings);
      const signal = Float32Array.from({ length: frameLength + 3 * 149 }, (_, i) => Math.sin(i * i) / 2);
      const values = new Float32Array(150 * 12);
      // More frames than one call of the module takes.
      banks.compute(signal, 150, values);
      for (const frame of [0, 1, 127, 128, 149]) {
        const wanted = plain(signal.subarray(3 * frame, 3 * frame + frameLength), rate, 12);
        const own = [...values.subarray(12 * frame, 12 * frame + 12)];
        // The triangles are rounded as torchaudio rounds them.
        expect(difference(own, wanted).largest).toBeLessThan(2e-3);
      }
    },
  );

  it.each([0, 1e-45, 1e-20, 1e10, 3.4e38])(
    "gives numbers for samples of %d, each frame for itself",
    (size) => {
      const settings = settingsOf({ mels: 23, rate: 8000 });
      const banks = new FilterBanks(settings);
      // An odd number of frames: the last has no neighbour.
      const signal = Float32Array.from({ length: 200 + 6 * 80 }, (_, i) => size * Math.sin(i * i));
      const all = new Float32Array(7 * 23);
      banks.compute(signal, 7, all);
      expect(all.every(Number.isFinite)).toBe(true);
      for (let frame = 0; frame < 7; frame++) {
        const own = new Float32Array(23);
        banks.compute(signal.subarray(80 * frame), 1, own);
        expect(own).toEqual(all.subarray(23 * frame, 23 * frame + 23));
      }
    },
  );

  it("is made of its source", () => {
    const source = readFileSync(new URL("../../../src/media/filter-banks.c", import.meta.url));
    expect(createHash("sha256").update(source).digest("hex")).toBe(SOURCE_HASH);
  });
});

describe("filter banks of a stream", () => {
  const settings = { ...settingsOf({ mels: 80, rate: 16_000 }), frameMultiple: 4, flushFrames: 16 };
  const banks = new FilterBanks(settings);
  const signal = signalOf(cases[0]!);
  const count = banks.framesOf(signal.length);
  const total = count + 16 - ((count + 16) % 4);
  const whole = new Float32Array(total * 80).fill(SILENT_BAND);
  banks.compute(signal, count, whole);

  function streamed(sizes: Iterable<number>): { values: number[]; frames: number[] } {
    let carried = new Float32Array();
    let at = 0;
    const values: number[] = [];
    const frames: number[] = [];
    for (const size of sizes) {
      const end = Math.min(signal.length, at + size);
      const next = nextFrames(banks, settings, carried, signal.subarray(at, end), end === signal.length);
      ({ carried } = next as { carried: Float32Array<ArrayBuffer> });
      values.push(...next.values);
      frames.push(next.frames);
      at = end;
      if (at === signal.length) break;
    }
    return { values, frames };
  }

  it.each([1, 7, 160, 399, 5120, 100_000])(
    "in chunks of %d samples are those of the whole, in multiples",
    (size) => {
      const endless = {
        *[Symbol.iterator]() {
          while (true) yield size;
        },
      };
      const { values, frames } = streamed(endless);
      expect(difference(values, [...whole]).largest).toBe(0);
      expect(frames.every((one) => one % 4 === 0)).toBe(true);
    },
  );

  it("ends with silence after an empty last chunk", () => {
    const { values } = streamed([4000, 0, 3000, 3000, 0]);
    expect(difference(values, [...whole]).largest).toBe(0);
  });
});

describe("Fourier transforms", () => {
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
});

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
