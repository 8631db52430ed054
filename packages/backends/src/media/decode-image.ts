import { float32ToFloat16, TritonError } from "@tritonjs/protocol";
import type { Sharp, SharpInput } from "sharp";
import { type ImagePlan, imageFormatOf } from "./image-options.js";
import type { SharpModule } from "./import-sharp.js";
import { badFile } from "./media-parameters.js";

/** A decoded image of the tensor's size: channels from 0 to 255, pixel by pixel, row by row. */
interface DecodedImage {
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

/** The array of a tensor of pixels. */
type PixelArray = Float32Array | Uint16Array | Uint8Array;

/** Writes the pixels of an image into its place in a tensor. */
export type WritePixels = (
  pixels: Uint8Array,
  channels: number,
  target: PixelArray,
  offset: number,
) => Promise<void>;

/** Values that are converted between two turns of the event loop: about a third of a millisecond. */
const VALUES_A_SLICE = 2 ** 18;

/** Creates the array for a number of values. */
export function pixelArray(dtype: ImagePlan["dtype"], length: number): PixelArray {
  if (dtype === "UINT8") return new Uint8Array(length);
  return dtype === "FP16" ? new Uint16Array(length) : new Float32Array(length);
}

/**
 * Creates a function that normalizes pixels and brings them into the layout of the tensor. A channel has only 256
 * values, so each is computed once, in double precision.
 */
export function pixelWriter(plan: ImagePlan): WritePixels {
  const { width, height, channels, colour, layout } = plan;
  const count = width * height;
  const tables = Array.from({ length: channels }, (_, channel) => tableOf(plan, channel));
  // Distance between the channels of a pixel, and between pixels.
  const [step, stride] = layout === "NCHW" ? [count, 1] : [1, channels];
  const pixelsASlice = Math.max(1, Math.floor(VALUES_A_SLICE / 3));
  return async (pixels, sourceChannels, target, offset) => {
    for (let from = 0; from < count; from += pixelsASlice) {
      if (from > 0) await new Promise((resolve) => setImmediate(resolve));
      const to = Math.min(count, from + pixelsASlice);
      if (colour === "grey") {
        writeGrey(pixels, sourceChannels, tables[0]!, target, offset, from, to);
        continue;
      }
      for (let channel = 0; channel < 3; channel++) {
        const source = sourceChannels < 3 ? 0 : colour === "BGR" ? 2 - channel : channel;
        const table = tables[channel]!;
        let place = offset + channel * step + from * stride;
        for (let i = from * sourceChannels + source; i < to * sourceChannels; i += sourceChannels) {
          target[place] = table[pixels[i]!]!;
          place += stride;
        }
      }
    }
  };
}

function writeGrey(
  pixels: Uint8Array,
  channels: number,
  table: PixelArray,
  target: PixelArray,
  offset: number,
  from: number,
  to: number,
): void {
  for (let pixel = from; pixel < to; pixel++) {
    const i = pixel * channels;
    // Whole thousandths, so that equal channels keep their value.
    const grey =
      channels < 3
        ? pixels[i]!
        : Math.round((299 * pixels[i]! + 587 * pixels[i + 1]! + 114 * pixels[i + 2]!) / 1000);
    target[offset + pixel] = table[grey]!;
  }
}

/** Value in the tensor for each value from 0 to 255. */
function tableOf({ dtype, scale, mean, std }: ImagePlan, channel: number): PixelArray {
  if (dtype === "UINT8") return Uint8Array.from({ length: 256 }, (_, value) => value);
  const values = Float32Array.from(
    { length: 256 },
    (_, value) => (value * scale - mean[channel]!) / std[channel]!,
  );
  return dtype === "FP16" ? float32ToFloat16(values) : values;
}
