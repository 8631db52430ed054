import sharp, { type Sharp } from "sharp";

/** A decoded picture: red, green and blue of each pixel. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly rgb: Uint8Array;
}

/** A rectangle in pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** A picture as a network wants it: planes of blue, green and red. */
export interface Planes {
  readonly width: number;
  readonly height: number;
  readonly data: Float32Array;
}

/** Longest side, in pixels, of the picture that the detector gets. */
const LONGEST_SIDE = 960;
/** The detector halves a picture five times. */
const GRANULARITY = 32;
/** Height of the lines that the recogniser gets. */
const LINE_HEIGHT = 48;

/** Decodes any format that sharp reads: PNG, JPEG, WebP, AVIF, GIF, TIFF, SVG. */
export async function decodePicture(file: Uint8Array): Promise<Picture> {
  const image = sharp(file).rotate().flatten({ background: "white" }).toColourspace("srgb");
  const { data, info } = await image.raw().toBuffer({ resolveWithObject: true });
  return { width: info.width, height: info.height, rgb: data };
}

/** Scales a picture for the detector. */
export function toDetectorPlanes({ width, height, rgb }: Picture): Promise<Planes> {
  const scale = Math.min(1, LONGEST_SIDE / Math.max(width, height));
  const round = (side: number) => Math.max(1, Math.round((side * scale) / GRANULARITY)) * GRANULARITY;
  const image = sharp(rgb, { raw: { width, height, channels: 3 } });
  return toPlanes(image, round(width), round(height), [0.406, 0.456, 0.485], [0.225, 0.224, 0.229]);
}

/** Cuts a line out of a picture for the recogniser: 48 pixels high, as wide as it then is. */
export function toLinePlanes({ width, height, rgb }: Picture, box: Box): Promise<Planes> {
  const image = sharp(rgb, { raw: { width, height, channels: 3 } }).extract(box);
  const lineWidth = Math.max(LINE_HEIGHT, Math.round((box.width * LINE_HEIGHT) / box.height));
  return toPlanes(image, lineWidth, LINE_HEIGHT, [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]);
}

/** Resizes, and normalises the colours with the mean and deviation of blue, green and red. */
async function toPlanes(
  image: Sharp,
  width: number,
  height: number,
  mean: readonly number[],
  deviation: readonly number[],
): Promise<Planes> {
  const rgb = await image.resize(width, height, { fit: "fill" }).raw().toBuffer();
  const size = width * height;
  const data = new Float32Array(3 * size);
  for (let plane = 0; plane < 3; plane++) {
    const channel = 2 - plane;
    for (let i = 0; i < size; i++) {
      data[plane * size + i] = (rgb[3 * i + channel]! / 255 - mean[plane]!) / deviation[plane]!;
    }
  }
  return { width, height, data };
}
