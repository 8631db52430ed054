import { describe, expect, it } from "vitest";
import { decodeWav, readWav } from "../../../src/media/wav.js";
import { messageThrownBy } from "../support/message-thrown-by.js";
import { integers, writeWav } from "../support/write-wav.js";

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
