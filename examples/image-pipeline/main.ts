/* Decodes a picture once, for a classifier and a segmenter that run at the same time. */
import { Triton } from "@tritonjs/core";
import sharp from "sharp";
import { CLASSES, COLOURS } from "./make-models.js";
import { bindPicture, SIZE } from "./pipeline.js";

await using triton = new Triton();
const picture = bindPicture(triton);

const { mask, probabilities } = await picture.inferSample({ image: [await landscape(64, 48)] });
for (let y = 0; y < SIZE; y += 2) {
  console.log(Array.from({ length: SIZE }, (_, x) => CLASSES[Number(mask.get(y, x))]![0]).join(" "));
}
for (const [i, name] of CLASSES.entries()) console.log(`${name}: ${probabilities.get(i).toFixed(2)}`);
const refused = await picture.inferSample({ image: ["no picture"] }).catch((error: Error) => error.message);
console.log(refused);

/** Two thirds of sky above a meadow, with a strip of beach, as JPEG. */
function landscape(width: number, height: number): Promise<Uint8Array> {
  const rgb = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) {
    const { sky, meadow, beach } = COLOURS;
    const colour = y < (height * 2) / 3 ? sky : y < (height * 5) / 6 ? meadow : beach;
    const row = Uint8Array.from({ length: width * 3 }, (_, i) => 255 * colour[i % 3]!);
    rgb.set(row, y * width * 3);
  }
  return sharp(rgb, { raw: { width, height, channels: 3 } })
    .jpeg({ quality: 95 })
    .toBuffer();
}
