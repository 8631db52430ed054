import { describe, expect, it } from "vitest";
import type { AudioOptions } from "../../../src/media/audio-options.js";
import { planAudio } from "../../../src/media/audio-options.js";
import { AudioPreparer } from "../../../src/media/audio-preparer.js";
import { difference, expectedValues, fixture, inputsOf } from "../support/fixtures.js";
import { messageThrownBy } from "../support/message-thrown-by.js";
import { integers, writeWav } from "../support/write-wav.js";

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
