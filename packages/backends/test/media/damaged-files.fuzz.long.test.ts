import { TritonError } from "@tritonjs/protocol";
import fc from "fast-check";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { planAudio } from "../../src/media/audio-options.js";
import { AudioPreparer } from "../../src/media/audio-preparer.js";
import { decodeImage } from "../../src/media/image-backend.js";
import { planImage } from "../../src/media/image-options.js";
import { fixture, inputsOf } from "./support/fixtures.js";
import { writeWav } from "./support/write-wav.js";

/** Changes, cuts and repetitions of a file. */
const damageOf = (file: Uint8Array) =>
  fc
    .record({
      changes: fc.array(fc.record({ at: fc.nat(file.length - 1), value: fc.nat(255) }), { maxLength: 8 }),
      cut: fc.option(fc.nat(file.length), { nil: file.length }),
      from: fc.nat(file.length),
      removed: fc.oneof(fc.constant(0), fc.nat(40)),
    })
    .map(({ changes, cut, from, removed }) => {
      const damaged = Uint8Array.from(file);
      for (const { at, value } of changes) damaged[at] = value;
      return Buffer.concat([damaged.subarray(0, from), damaged.subarray(from + removed)]).subarray(0, cut);
    });

function assertRefused(error: unknown): void {
  expect(TritonError.is(error) && error.code, String(error)).toBe("INVALID_ARG");
}

describe("a damaged image is decoded to the tensor's size or refused", () => {
  const plan = planImage({ width: 8, height: 8, animated: "first", maxPixels: 1_000_000 });
  test.each([
    "photo.jpg",
    "turned.jpg",
    "photo.png",
    "alpha.png",
    "grey16.png",
    "animated.gif",
    "still.webp",
    "bmp-8-rle.bmp",
    "bmp-16-masks.bmp",
    "bmp-32-alpha.bmp",
  ])("%s", async (name) => {
    await fc.assert(
      fc.asyncProperty(damageOf(fixture(name)), async (file) => {
        try {
          expect((await decodeImage(sharp, plan, file, 0)).pixels).toHaveLength(8 * 8 * 3);
        } catch (error) {
          assertRefused(error);
        }
      }),
      { numRuns: 150 },
    );
  });
});

describe("a WAV file with any header is prepared with finite values or refused", () => {
  const preparers = [
    { maxSeconds: 2 },
    { features: "mel", mels: 8, log: "whisper", maxSeconds: 2 },
    { features: "frames", seconds: 0.1 },
    { preset: "whisper", seconds: 0.05 },
    { features: "fbank", mels: 8, maxSeconds: 2 },
  ].map((options) => new AudioPreparer(planAudio(options as never)));

  function prepareAll(file: Uint8Array): void {
    for (const preparer of preparers) {
      try {
        for (const tensor of preparer.prepare(inputsOf([file]), true).values()) {
          expect((tensor.elements as Float32Array).every(Number.isFinite)).toBe(true);
        }
      } catch (error) {
        assertRefused(error);
      }
    }
  }

  test("random fields", () => {
    const content = fc.record({
      tag: fc.constantFrom(1, 3, 6, 7, 2, 0xfffe),
      bits: fc.constantFrom(8, 16, 24, 32, 64, 0, 12, 40),
      channels: fc.oneof(fc.integer({ min: 0, max: 8 }), fc.nat(65_535)),
      sampleRate: fc.oneof(
        fc.constantFrom(8000, 16_000, 44_100, 48_000, 192_000),
        fc.nat(800_000),
        fc.nat(0xffffffff),
      ),
      extensible: fc.boolean(),
      claimedSize: fc.option(fc.oneof(fc.nat(2000), fc.nat(0xffffffff)), { nil: undefined }),
    });
    fc.assert(
      fc.property(content, fc.uint8Array({ maxLength: 2000 }), (fields, samples) => {
        prepareAll(writeWav(samples, fields as never));
      }),
      { numRuns: 300 },
    );
  });

  test("changes and cuts of a good file", () => {
    fc.assert(fc.property(damageOf(fixture("chirp.wav")), prepareAll), { numRuns: 100 });
  });
});
