import { float32ToFloat16 } from "@tritonjs/protocol";
import type { ImagePlan } from "./image-plan.js";

/** The array of a tensor of pixels. */
export type PixelArray = Float32Array | Uint16Array | Uint8Array;

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
