import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { audio } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outcomeOf } from "../../../../test/support/outcome.js";
import { repositoryRoot } from "../../../../test/support/repository.js";
import { type AudioOptions, planAudio } from "../../src/media/audio-options.js";
import { AudioPreparer, Resampler } from "../../src/media/audio-preparer.js";
import { FilterBanks, nextFrames, SILENT_BAND } from "../../src/media/filter-banks.js";
import { SOURCE_HASH } from "../../src/media/filter-banks-module.js";
import { FourierTransform, transformFactors } from "../../src/media/fourier-transform.js";
import { decodeWav, readWav } from "../../src/media/wav.js";
import { difference, expectedValues, fixture, inputsOf } from "./support/fixtures.js";
import { messageThrownBy } from "./support/message-thrown-by.js";
import { integers, writeWav } from "./support/write-wav.js";

describe("the audio backend", () => {
  const folder = join(repositoryRoot, "packages/backends/test/media/fixtures");

  const chirp = readFileSync(join(folder, "chirp.wav"));

  const { audio: expected } = JSON.parse(readFileSync(join(folder, "expected.json"), "utf8"));

  let triton: Triton;

  beforeEach(() => {
    triton = new Triton();
  });

  afterEach(() => triton.close());

  describe.each(["worker", "inline"] as const)("a bound audio backend (%s)", (isolation) => {
    const bind = (options: Parameters<typeof audio>[0]) =>
      triton.bind({
        modelName: "audio",
        inferFunc: audio(options),
        config: { maxBatchSize: 8, instanceGroup: { isolation } },
      });

    it("describes its tensors, and answers what numpy computed", async () => {
      const model = bind({ features: "mel", mels: 24 });
      expect(model.metadata()).toMatchObject({
        inputs: [{ name: "audio", datatype: "BYTES", shape: [-1, 1] }],
        outputs: [{ name: "mel", datatype: "FP32", shape: [-1, 24, -1] }],
      });
      const { mel } = await model.inferSample({ audio: [chirp] });
      const { shape, data } = expected["mels 24 slaney"];
      const wanted = new Float32Array(new Uint8Array(Buffer.from(data, "base64")).buffer);
      expect(mel!.shape).toEqual(shape);
      for (const [i, value] of (mel!.data as Float32Array).entries())
        expect(value).toBeCloseTo(wanted[i]!, 5);
      expect(model.statistics()).toMatchObject({ inferenceCount: 1 });
    });

    it("answers requests of one batch in their own lengths; a bad file fails only its own", async () => {
      const model = bind({ lengths: true });
      // The header stays; fewer samples follow.
      const short = Uint8Array.from(chirp.subarray(0, 44 + 200));
      new DataView(short.buffer).setUint32(40, 200, true);
      const files = [chirp, short, Buffer.from("no audio at all"), chirp, short];
      const outcomes = await Promise.allSettled(files.map((file) => model.inferSample({ audio: [file] })));
      const lengths = outcomes.map((one) =>
        one.status === "fulfilled"
          ? [one.value.waveform!.data.length, ...(one.value.lengths!.data as Int32Array)]
          : one.reason.message,
      );
      expect(lengths).toEqual([
        [3200, 3200],
        [100, 100],
        "input 'audio': expected a WAV file, got 15 bytes of something else",
        [3200, 3200],
        [100, 100],
      ]);
    });

    it("ends a cancelled request at once, and answers the others", async () => {
      const model = bind({ preset: "whisper" });
      const cancel = new AbortController();
      const cancelled = model.inferSample({ audio: [chirp] }, { signal: cancel.signal });
      const other = model.inferSample({ audio: [chirp] });
      cancel.abort();
      expect(await outcomeOf(cancelled)).toMatch(/^CANCELLED /);
      expect((await other).mel!.shape).toEqual([80, 3000]);
    });
  });
});

function prepare(files: readonly Uint8Array[], options: AudioOptions = {}) {
  const plan = planAudio(options);
  const outputs = new AudioPreparer(plan).prepare(inputsOf(files), true);
  const made = outputs.get(plan.outputName)!;
  const lengths = outputs.get(plan.lengthsName)?.elements as Int32Array | undefined;
  return {
    shape: made.shape,
    values: [...(made.elements as Float32Array)],
    lengths: lengths && [...lengths],
  };
}

const ramp = (count: number) => Array.from({ length: count }, (_, i) => (i + 1) / 64);

const wav = (count: number, content = {}) => writeWav(integers(ramp(count), 16), content);

describe("a mel spectrogram", () => {
  it.each([
    ["mels 24 slaney", { mels: 24 }],
    [
      "mels 24 htk, window 320 of 512, magnitudes, peaks of 1",
      { mels: 24, nFft: 512, windowLength: 320, melScale: "htk", melNorm: "none", power: 1 },
    ],
    [
      "mels 16 from 60 to 7600 Hz, not centred, ln",
      { mels: 16, nFft: 360, fMin: 60, fMax: 7600, center: false, log: "ln" },
    ],
    ["whisper, one second", { preset: "whisper", seconds: 1 }],
  ] as const)("(%s) is numpy's to 1e-6", (name, options) => {
    const wanted = expectedValues(name);
    const { shape, values } = prepare([fixture("chirp.wav")], { features: "mel", ...options });
    expect(shape).toEqual([1, ...wanted.shape]);
    const scale = wanted.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    expect(scale).toBeGreaterThan(0.5);
    expect(difference(values, wanted.values).largest / scale).toBeLessThan(1e-6);
  });

  it("of Whisper has 3,000 frames of 30 seconds", () => {
    const { shape, values } = prepare([fixture("chirp.wav")], { preset: "whisper" });
    expect(shape).toEqual([1, 80, 3000]);
    expect(values.every(Number.isFinite)).toBe(true);
  });

  it("has decibels that are ten times the logarithm", () => {
    const options = { features: "mel", mels: 8 } as const;
    const logs = prepare([fixture("chirp.wav")], { ...options, log: "log10" }).values;
    const decibels = prepare([fixture("chirp.wav")], { ...options, log: "db" }).values;
    expect(
      difference(
        decibels,
        logs.map((value) => 10 * value),
      ).largest,
    ).toBeLessThan(1e-5);
  });
});

describe("a waveform", () => {
  it("is as long as the file, and as the longest of a request, with silence at the end", () => {
    expect(prepare([wav(3), wav(5), wav(1)], { lengths: true })).toEqual({
      shape: [3, 5],
      values: [...ramp(3), 0, 0, ...ramp(5), ...ramp(1), 0, 0, 0, 0],
      lengths: [3, 5, 1],
    });
  });

  it("of a given length is cut or padded", () => {
    const options = { sampleRate: 16_000, seconds: 4 / 16_000, lengths: true };
    expect(prepare([wav(6), wav(2)], options)).toEqual({
      shape: [2, 4],
      values: [...ramp(4), ...ramp(2), 0, 0],
      lengths: [4, 2],
    });
  });

  it("of a given length is the beginning of the whole one when the rate changes", () => {
    const long = writeWav(
      integers(
        Array.from({ length: 8000 }, (_, i) => Math.sin(i / 9) / 2),
        16,
      ),
      {
        sampleRate: 44_100,
      },
    );
    const whole = prepare([long]).values;
    expect(difference(prepare([long], { seconds: 0.1 }).values, whole.slice(0, 1600)).largest).toBeLessThan(
      1e-7,
    );
  });

  it("keeps the channels if the options say so", () => {
    expect(prepare([wav(6, { channels: 2 })], { mono: false })).toMatchObject({
      shape: [1, 2, 3],
      values: [1, 3, 5, 2, 4, 6].map((value) => value / 64),
    });
  });
});

describe("frames", () => {
  it("overlap, and the last one reaches over the end", () => {
    expect(prepare([wav(6)], { features: "frames", frameLength: 4, hopLength: 3, lengths: true })).toEqual({
      shape: [1, 2, 4],
      values: [1, 2, 3, 4, 4, 5, 6, 0].map((value) => value / 64),
      lengths: [2],
    });
  });
});

describe("a request is refused with the name of the input", () => {
  const refused = (files: readonly Uint8Array[], options: AudioOptions = {}) =>
    messageThrownBy(() => prepare(files, options));

  it("for a bad file, and the row of that file", () => {
    expect(refused([wav(3), Buffer.from("no audio at all")])).toBe(
      "INVALID_ARG input 'audio', row 1: expected a WAV file, got 15 bytes of something else",
    );
    expect(refused([wav(0)])).toBe("INVALID_ARG input 'audio': expected at least one sample, got none");
    expect(refused([wav(3)], { maxBytes: 10 })).toBe(
      "INVALID_ARG input 'audio': expected audio of at most 10 bytes, got 50",
    );
  });

  it("for more audio than the limit, where padding counts", () => {
    const second = writeWav(new Uint8Array(32_000));
    expect(refused([second], { maxSeconds: 0.9 })).toBe(
      "INVALID_ARG input 'audio': expected at most 0.9 seconds of audio, got 1.0",
    );
    expect(refused([second, wav(1), wav(1)], { maxSeconds: 2 })).toBe(
      "INVALID_ARG input 'audio': expected at most 2 seconds of audio, got 3.0 (3 files, each as long as the longest)",
    );
    // A low rate makes a small file long.
    expect(refused([wav(1000, { sampleRate: 1 })])).toBe(
      "INVALID_ARG input 'audio': expected at most 600 seconds of audio, got 1000.0",
    );
  });

  it("for files with different numbers of channels that are to be kept", () => {
    expect(refused([wav(4, { channels: 2 }), wav(4)], { mono: false })).toBe(
      "INVALID_ARG input 'audio', row 1: expected 2 channels as in row 0, got 1",
    );
  });
});

describe("an option of audio that is refused", () => {
  it.each([
    [{ preset: "wav2vec" }, "preset: expected one of whisper, got 'wav2vec'"],
    [{ sampleRate: 0 }, "sampleRate: expected an integer from 1000 to 192000, got 0"],
    [{ nFft: 74 }, "nFft: expected a product of primes up to 31, got 74"],
    [{ windowLength: 500 }, "windowLength: expected an integer from 1 to 400, got 500"],
    [{ fMin: 9000 }, "fMin and fMax: expected 0 <= fMin < fMax <= 8000, got [9000, 8000]"],
    [{ features: "mel", mono: false }, "mono: expected true with the features 'mel', got false"],
    [{ seconds: 0 }, "seconds: expected a number above 0, up to 86400, got 0"],
    [{ floor: 0 }, "floor: expected a number above 0, got 0"],
  ])("%j", (options, text) => {
    expect(messageThrownBy(() => planAudio(options as AudioOptions))).toBe(`INVALID_ARG ${text}`);
  });
});

const samples = [0, 0.5, -0.5, 0.25, -1, 0.75];

const decode = (file: Uint8Array, mono = true) => decodeWav(readWav(file), mono).map((one) => [...one]);

describe("a WAV file", () => {
  it.each([16, 24, 32] as const)("of integers with %d bits", (bits) => {
    expect(decode(writeWav(integers(samples, bits), { bits }))).toEqual([samples]);
  });

  it("of unsigned bytes", () => {
    const bytes = Uint8Array.from(samples, (sample) => 128 + 128 * sample);
    expect(decode(writeWav(bytes, { bits: 8 }))).toEqual([samples]);
  });

  it.each([
    [32, Float32Array],
    [64, Float64Array],
  ] as const)("of floats with %d bits; those that are not finite count as silence", (bits, List) => {
    const list = List.from([...samples, Number.NaN, Number.POSITIVE_INFINITY]);
    expect(decode(writeWav(new Uint8Array(list.buffer), { tag: 3, bits }))).toEqual([[...samples, 0, 0]]);
  });

  it("of A-law and mu-law, with the values of G.711", () => {
    const scaled = (tag: 6 | 7, codes: number[]) =>
      decode(writeWav(Uint8Array.from(codes), { tag, bits: 8 }))[0]!.map((value) => value * 32768);
    expect(scaled(6, [0xd5, 0x55, 0xaa, 0x2a, 0x80])).toEqual([8, -8, 32256, -32256, 5504]);
    expect(scaled(7, [0xff, 0x7f, 0x80, 0x00, 0xce])).toEqual([0, 0, 32124, -32124, 988]);
  });

  it("with the extensible format, further chunks of odd sizes, and a claimed size that is unknown", () => {
    const file = writeWav(integers(samples, 24), {
      bits: 24,
      extensible: true,
      chunks: [
        ["LIST", Uint8Array.of(1, 2, 3)],
        ["fact", new Uint8Array(4)],
      ],
      claimedSize: 0xffffffff,
    });
    expect(decode(file)).toEqual([samples]);
  });

  it("with several channels, separately or as their mean", () => {
    const file = writeWav(integers(samples, 16), { channels: 3, sampleRate: 44_100 });
    expect(readWav(file)).toMatchObject({ channels: 3, sampleRate: 44_100, length: 2 });
    expect(decode(file, false)).toEqual([
      [0, 0.25],
      [0.5, -1],
      [-0.5, 0.75],
    ]);
    expect(decode(file)).toEqual([[0, 0]]);
  });

  it("at any place in memory", () => {
    const file = writeWav(integers(samples, 16));
    const moved = new Uint8Array(file.length + 3);
    moved.set(file, 3);
    expect(decode(moved.subarray(3))).toEqual([samples]);
  });
});

describe("a file that is refused", () => {
  const good = writeWav(integers(samples, 16));
  const changed = (change: (view: DataView) => void) => {
    const file = Uint8Array.from(good);
    change(new DataView(file.buffer));
    return file;
  };

  it.each([
    ["nothing", new Uint8Array(), "expected a WAV file, got 0 bytes of something else"],
    ["text", Buffer.from("some other file"), "expected a WAV file, got 15 bytes of something else"],
    [
      "a cut file",
      good.subarray(0, good.length - 1),
      "expected 12 bytes of samples, got 11: the file is cut",
    ],
    ["a cut header", good.subarray(0, 30), "expected 16 bytes in the chunk 'fmt ', got 10: the file is cut"],
    ["no samples", good.subarray(0, 36), "expected a chunk 'data', got the end of the file after 36 bytes"],
    ["no format", changed((v) => v.setUint8(12, 0x78)), "expected a chunk 'fmt ' before 'data', got none"],
    ["no channels", changed((v) => v.setUint16(22, 0, true)), "expected 1 to 64 channels, got 0"],
    [
      "no rate",
      changed((v) => v.setUint32(24, 0, true)),
      "expected a sample rate from 1 to 768000 Hz, got 0",
    ],
    [
      "another encoding",
      changed((v) => v.setUint16(20, 85, true)),
      "expected PCM of 8, 16, 24 or 32 bits, float of 32 or 64 bits, A-law or mu-law, got format 85 of 16 bits",
    ],
    [
      "blocks of another size",
      changed((v) => v.setUint16(32, 3, true)),
      "expected blocks of 2 bytes (1 channels of 16 bits), got 3",
    ],
  ])("%s", (_, file, text) => {
    expect(messageThrownBy(() => readWav(file))).toBe(text);
  });
});

interface Case {
  readonly name: string;
  readonly mels: number;
  readonly rate: number;
  readonly frames: number;
  readonly samples: string;
  readonly values: string;
}

const { cases } = JSON.parse(readFileSync(new URL("./fixtures/fbank.json", import.meta.url), "utf8")) as {
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
    const source = readFileSync(new URL("../../src/media/filter-banks.c", import.meta.url));
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
