import { readFileSync } from "node:fs";
import { join } from "node:path";
import { image } from "@tritonjs/backends/media";
import { Triton } from "@tritonjs/core";
import { expectThat, type FuzzTarget, refusalOf } from "../engine/target.js";

/** Encoded images, through a model of the backend `image`. */
export async function open(): Promise<FuzzTarget> {
  const triton = new Triton({ logger: { error() {}, warn() {}, info() {}, debug() {} } });
  const model = triton.bind({
    modelName: "image",
    inferFunc: image({ width: 8, height: 8, maxPixels: 1_000_000 }),
    config: { maxBatchSize: 4 },
  });
  await model.ready();
  const [input] = model.metadata().inputs;
  const folder = join("packages", "backends", "test", "media", "fixtures");
  const seeds = [
    "photo.jpg",
    "photo.png",
    "alpha.png",
    "grey16.png",
    "animated.gif",
    "still.gif",
    "still.webp",
    "turned.jpg",
  ]
    .map((name) => readFileSync(join(folder, name)))
    .filter(({ length }) => length < 30_000);
  return {
    seeds,
    lanes: 4,
    maxBytes: 30_000,
    tokens: [
      "IHDR",
      "IDAT",
      "PLTE",
      "tRNS",
      "iCCP",
      "eXIf",
      "acTL",
      "GIF89a",
      "RIFF",
      "WEBP",
      "VP8X",
      "Exif",
      Buffer.of(0xff, 0xd8),
      Buffer.of(0xff, 0xda),
      Buffer.of(0xff, 0xc2),
    ],
    async run(bytes) {
      try {
        const outputs = await model.inferSample({ [input!.name]: [Buffer.from(bytes)] } as never);
        const [array] = Object.values(outputs) as { readonly size: number }[];
        expectThat(array!.size === 8 * 8 * 3, () => `${array!.size} values`);
        return "decoded";
      } catch (error) {
        return refusalOf(error);
      }
    },
    close: () => triton.close(),
  };
}
