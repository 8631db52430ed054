import { TritonError } from "@tritonjs/protocol";
import type { Sharp, SharpInput } from "sharp";
import { badFile } from "../parameters/bytes-input.js";
import { imageFormatOf } from "./image-format.js";
import type { ImagePlan } from "./image-plan.js";
import type { SharpModule } from "./import-sharp.js";

/** A decoded image of the tensor's size: channels from 0 to 255, pixel by pixel, row by row. */
export interface DecodedImage {
  readonly pixels: Uint8Array;
  /** Channels of a pixel: 3, or 1 for a decoder that keeps an image grey. */
  readonly channels: number;
  /** Height and width of the upright image before it was resized; undefined unless the plan asks for it. */
  readonly originalSize: readonly [number, number] | undefined;
}

/** Longest side of an image in pixels, as in JPEG: a strip of a few pixels by millions takes seconds to resize. */
const MAX_SIDE = 65_535;

/**
 * Decodes and resizes an image on libuv's threads.
 *
 * @param row for error messages; undefined for a request with a single row
 * @throws TritonError INVALID_ARG for a file that is not an image, is damaged, or exceeds a limit
 */
export async function decodeImage(
  sharp: SharpModule,
  plan: ImagePlan,
  file: Uint8Array,
  row: number | undefined,
): Promise<DecodedImage> {
  const refuse = (text: string, cause?: unknown) => badFile(plan.inputName, row, text, cause);
  const { maxBytes, maxPixels, formats } = plan;
  if (file.byteLength > maxBytes) {
    throw refuse(`expected an image of at most ${maxBytes} bytes, got ${file.byteLength}`);
  }
  const format = imageFormatOf(file);
  if (format === undefined || !formats.includes(format)) {
    const got = format ?? `${file.byteLength} bytes of something else`;
    throw refuse(`expected an image (${formats.join(", ")}), got ${got}`);
  }
  try {
    const source = sharp(file as SharpInput, { failOn: plan.failOn, limitInputPixels: maxPixels });
    let originalSize: readonly [number, number] | undefined;
    if (plan.originalSize || format !== "jpeg") {
      const { pages = 1, autoOrient } = await source.metadata();
      const { width, height } = autoOrient;
      if (pages > 1 && plan.animated === "refuse") {
        throw refuse(`expected a single image, got an animation or pages: ${pages} images`);
      }
      if (Math.max(width, height) > MAX_SIDE) {
        throw refuse(`expected an image of at most ${MAX_SIDE} pixels a side, got ${width}x${height}`);
      }
      if (plan.originalSize) originalSize = [height, width];
    }
    const { data, info } = await sized(source, plan).raw().toBuffer({ resolveWithObject: true });
    return { pixels: data, channels: info.channels, originalSize };
  } catch (error) {
    if ((error as Error).message.includes("exceeds pixel limit")) {
      throw refuse(`expected an image of at most ${maxPixels} pixels, got a larger one`, error);
    }
    if (TritonError.is(error)) throw error;
    throw refuse(`cannot decode the ${format} image: ${firstLine(error)}`, error);
  }
}

function sized(source: Sharp, plan: ImagePlan): Sharp {
  const { width, height, fit, kernel, position, shorterSide } = plan;
  const [r, g, b] = plan.background;
  const background = { r, g, b };
  const upright = source.autoOrient().flatten({ background });
  if (shorterSide === 0) {
    return upright.resize({ width, height, fit, kernel, position, background }).toColourspace("srgb");
  }
  return upright
    .resize({ width: shorterSide, height: shorterSide, fit, kernel, position })
    .extract({
      left: Math.round((shorterSide - width) / 2),
      top: Math.round((shorterSide - height) / 2),
      width,
      height,
    })
    .toColourspace("srgb");
}

function firstLine(error: unknown): string {
  return (error as Error).message.split("\n", 1)[0]!.trim();
}
