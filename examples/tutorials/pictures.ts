import sharp from "sharp";
import { pathOf } from "./open-models.js";

/** A decoded picture: RGB from 0 to 255, row by row. */
export interface Picture {
  readonly height: number;
  readonly width: number;
  readonly values: Uint8Array;
}

export async function readPicture(name: string): Promise<Picture> {
  const { data, info } = await sharp(pathOf(`pictures/${name}.png`))
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { height: info.height, width: info.width, values: data };
}

const MEAN = [0.485, 0.456, 0.406];
const STD = [0.229, 0.224, 0.225];

/**
 * The transform of torchvision's networks in the client: the shorter side to 256, a crop to 224, from 0 to 1, minus the
 * mean and through the deviation of ImageNet. FP32 [3, 224, 224].
 */
export async function likeTorchvision(name: string): Promise<Float32Array> {
  const { data } = await sharp(pathOf(`pictures/${name}.png`))
    .removeAlpha()
    .resize({ width: 256, height: 256, fit: "outside", kernel: "linear" })
    .extract({ left: 16, top: 16, width: 224, height: 224 })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const count = 224 * 224;
  return Float32Array.from({ length: 3 * count }, (_, i) => {
    const channel = Math.floor(i / count);
    return (data[3 * (i % count) + channel]! / 255 - MEAN[channel]!) / STD[channel]!;
  });
}
