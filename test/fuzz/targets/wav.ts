import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tensor } from "@tritonjs/protocol";
import { planAudio } from "../../../packages/backends/src/media/audio-options.js";
import { AudioPreparer } from "../../../packages/backends/src/media/audio-preparer.js";
import { expectThat, type FuzzTarget, refusalOf } from "../engine/target.js";

/** WAV files. Each gives finite numbers in every kind of features, or is refused. */
export function open(): FuzzTarget {
  const preparers = [
    { maxSeconds: 2 },
    { features: "mel", mels: 8, log: "whisper", maxSeconds: 2 },
    { features: "frames", seconds: 0.1 },
    { features: "fbank", mels: 8, maxSeconds: 2 },
  ].map((options) => new AudioPreparer(planAudio(options as never)));
  const chirp = readFileSync(join("packages", "backends", "test", "media", "fixtures", "chirp.wav"));
  const seeds = [
    [1, 16, 1, 8000],
    [1, 24, 2, 44_100],
    [3, 32, 1, 16_000],
    [6, 8, 1, 8000],
    [7, 8, 2, 8000],
  ].map(([tag, bits, channels, rate]) => wav(tag!, bits!, channels!, rate!));
  return {
    seeds: [...seeds, chirp.subarray(0, 4000)],
    maxBytes: 6000,
    tokens: [
      "RIFF",
      "WAVE",
      "fmt ",
      "data",
      "LIST",
      "fact",
      Buffer.of(0xfe, 0xff),
      Buffer.of(0xff, 0xff, 0xff, 0xff),
    ],
    run(input) {
      const tensor = Tensor.fromElements("BYTES", [1, 1], [Buffer.from(input)]);
      const outcomes = preparers.map((preparer) => {
        try {
          for (const made of preparer.prepare(new Map([["audio", tensor]]), true).values()) {
            const allFinite = (made.elements as Float32Array).every(Number.isFinite);
            expectThat(allFinite, () => "numbers that are not finite");
          }
          return "prepared";
        } catch (error) {
          return refusalOf(error);
        }
      });
      return outcomes[0]!;
    },
  };
}

function wav(tag: number, bits: number, channels: number, rate: number): Buffer {
  const data = Buffer.alloc(240, 0x40);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + data.length, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(tag, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE((rate * channels * bits) / 8, 28);
  head.writeUInt16LE((channels * bits) / 8, 32);
  head.writeUInt16LE(bits, 34);
  head.write("data", 36);
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}
