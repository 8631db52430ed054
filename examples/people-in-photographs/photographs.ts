import { createRequire } from "node:module";
import { join } from "node:path";
import sharp from "sharp";

/** The package with the network and a sheet of photographs. Its files are not among its exports. */
const folder = join(createRequire(import.meta.url).resolve("@vladmandic/human"), "..", "..");

/** The network. */
export const detector = join(folder, "models", "centernet.json");

/** Places of the photographs on the sheet: left edge and width in pixels. */
const PLACES = {
  "a woman in white": [0, 158],
  "a woman in a garden": [168, 150],
  "a man at dinner": [326, 210],
  "a woman at a wall": [640, 150],
  "a woman on a stool": [798, 104],
  "three at a party": [1128, 150],
} as const;

/** Cuts the photographs out of the sheet, as JPEG files. */
export async function readPhotographs(): Promise<ReadonlyMap<string, Uint8Array>> {
  const sheet = join(folder, "assets", "samples.jpg");
  const cut = async ([name, [left, width]]: [string, readonly [number, number]]) => {
    const photograph = sharp(sheet).extract({ left, top: 2, width, height: 154 });
    return [name, new Uint8Array(await photograph.jpeg({ quality: 95 }).toBuffer())] as const;
  };
  return new Map(await Promise.all(Object.entries(PLACES).map(cut)));
}
