import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { FilterBanks, nextFrames, SILENT_BAND } from "../../../src/media/filter-banks.js";
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

describe("filter banks", () => {
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
