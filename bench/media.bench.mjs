/*
 * How much of bare sharp's speed is left of a 12-megapixel JPEG to a tensor of 224x224 through the server? Both decode
 * with JPEG's shrink-on-load, resize with the same filter, and normalize to FP32 NCHW; bare sharp is a loop of so many
 * images at a time. Then: what do seconds of audio cost on one thread, and what does the way to a worker cost?
 */

import { audio, image } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
import sharp from "sharp";
import { rateOf } from "./support/cpu-rate.mjs";
import { medianOf, ratioOf, runPairs, short } from "./support/pairs.mjs";
import { report } from "./support/report.mjs";

const SIDE = 224;
const mean = [0.485, 0.456, 0.406];
const std = [0.229, 0.224, 0.225];

const table = {};
const photo = await makePhoto();
for (const clients of [16, 1]) {
  const triton = new Triton();
  const model = triton.bind({
    modelName: "pixels",
    inferFunc: image({ width: SIDE, height: SIDE, mean, std }),
    config: { maxBatchSize: 4 },
  });
  const [wanted, { pixels }] = [await bareSharp(photo), await model.inferSample({ image: [photo] })];
  if (wanted.some((value, i) => value !== pixels.data[i]))
    throw new Error("expected the values of bare sharp");
  const ours = () => rateOf(clients, () => model.inferSample({ image: [photo] }));
  const theirs = () => rateOf(clients, () => bareSharp(photo));
  const runs = await runPairs(ours, theirs);
  const { ratios, ...byTime } = ratioOf(runs);
  table[`${clients} at a time`] = {
    "images a second here": medianOf(runs.ours, ({ rate }) => rate),
    "with bare sharp": medianOf(runs.reference, ({ rate }) => rate),
    ...byTime,
    "CPU ms an image here": medianOf(runs.ours, ({ cpu }) => cpu),
    "with bare sharp, CPU ms": medianOf(runs.reference, ({ cpu }) => cpu),
    "ratio by CPU": ratioOf(runs, ({ cpu }) => 1 / cpu).ratio,
  };
  await triton.close();
}
report("media", {
  rows: table,
  note: `JPEG of 4000x3000 pixels, ${Math.round(photo.length / 1024)} KB. Batches of at most 4 images.`,
  document: "media.md",
});
await measureAudio();

async function measureAudio() {
  const rows = {};
  for (const seconds of [0.02, 0.1, 1, 10]) {
    const file = makeWav(seconds);
    const row = {};
    for (const isolation of ["inline", "worker"]) {
      for (const [name, options] of [
        ["48 to 16 kHz", {}],
        ["48 to 16 kHz, mel", { features: "mel", log: "log10" }],
      ]) {
        const triton = new Triton();
        const model = triton.bind({
          modelName: "audio",
          inferFunc: audio(options),
          config: { maxBatchSize: 8, instanceGroup: { isolation } },
        });
        await rateOf(1, () => model.inferSample({ audio: [file] }));
        const { cpu } = await rateOf(1, () => model.inferSample({ audio: [file] }));
        row[`${name}, ${isolation}`] = short(cpu);
        await triton.close();
      }
    }
    rows[`${seconds} s`] = row;
  }
  report("media-audio", {
    rows,
    note: "Milliseconds of the processor for a request, one at a time.",
    document: "media.md",
  });
}

async function bareSharp(file) {
  const { data } = await sharp(file)
    .autoOrient()
    .resize(SIDE, SIDE, { fit: "cover", kernel: "linear" })
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const pixels = SIDE * SIDE;
  const values = new Float32Array(3 * pixels);
  for (let channel = 0; channel < 3; channel++) {
    for (let i = 0; i < pixels; i++) {
      values[channel * pixels + i] = (data[3 * i + channel] / 255 - mean[channel]) / std[channel];
    }
  }
  return values;
}

/** A picture with the detail of a photograph: smooth shapes and some noise. */
function makePhoto() {
  const [width, height] = [4000, 3000];
  const pixels = Buffer.alloc(width * height * 3);
  let seed = 1;
  for (let y = 0, i = 0; y < height; y++) {
    for (let x = 0; x < width; x++, i += 3) {
      seed = (seed * 1103515245 + 12345) & 0x7fffffff;
      const noise = (seed >> 16) & 15;
      pixels[i] = 110 + 90 * Math.sin(x / 190) * Math.cos(y / 130) + noise;
      pixels[i + 1] = (200 * x) / width + noise;
      pixels[i + 2] = 40 + (180 * y) / height + noise;
    }
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 88 })
    .toBuffer();
}

function makeWav(seconds) {
  const rate = 48_000;
  const samples = Math.round(seconds * rate);
  const file = Buffer.alloc(44 + 2 * samples);
  file.write("RIFF", 0);
  file.writeUInt32LE(36 + 2 * samples, 4);
  file.write("WAVEfmt ", 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(rate, 24);
  file.writeUInt32LE(2 * rate, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write("data", 36);
  file.writeUInt32LE(2 * samples, 40);
  for (let i = 0; i < samples; i++) file.writeInt16LE(Math.round(9000 * Math.sin(i / 20)), 44 + 2 * i);
  return file;
}
