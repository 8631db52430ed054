import { availableParallelism } from "node:os";
import { assertInteger, assertOneOf, mediaOptionError } from "../parameters/option-checks.js";
import type { ImageOptions } from "./image-options.js";

/** Options with their defaults, all checked. */
export type ImagePlan = Required<Omit<ImageOptions, "shorterSide" | "mean" | "std">> & {
  /** 0 if the image is resized directly to the tensor's size. */
  readonly shorterSide: number;
  readonly channels: 1 | 3;
  readonly mean: readonly number[];
  readonly std: readonly number[];
};

/** Defaults of {@link ImageOptions}, with reasons where a reader may ask. */
const DEFAULTS = {
  fit: "cover",
  position: "centre",
  kernel: "linear",
  background: [0, 0, 0],
  colour: "RGB",
  layout: "NCHW",
  dtype: "FP32",
  originalSize: false,
  animated: "refuse",
  formats: ["jpeg", "png", "webp", "gif", "tiff", "avif"],
  // A wrong picture is worse than an error.
  failOn: "warning",
  // Photographs of telephones have 12 to 50 million pixels. Decoded, this many take 150 MB.
  maxPixels: 50_000_000,
  maxBytes: 32 * 2 ** 20,
  inputName: "image",
  outputName: "pixels",
} as const satisfies Partial<ImageOptions>;

const MAX_SIDE = 16_384;

const WORDS = {
  fit: ["cover", "contain", "fill"],
  position: ["centre", "top", "right", "bottom", "left", "attention", "entropy"],
  kernel: ["nearest", "linear", "cubic", "mitchell", "lanczos2", "lanczos3"],
  colour: ["RGB", "BGR", "grey"],
  layout: ["NCHW", "NHWC"],
  dtype: ["FP32", "FP16", "UINT8"],
  animated: ["refuse", "first"],
  failOn: ["truncated", "error", "warning"],
} as const;

/**
 * Completes and checks options.
 *
 * @throws TritonError INVALID_ARG that names the option
 */
export function planImage(options: ImageOptions): ImagePlan {
  const { width, height, shorterSide = 0, fit = DEFAULTS.fit, colour = DEFAULTS.colour } = options;
  const channels = colour === "grey" ? 1 : 3;
  const isBytes = options.dtype === "UINT8";
  const plan: ImagePlan = {
    ...DEFAULTS,
    concurrency: defaultConcurrency(),
    scale: isBytes ? 1 : 1 / 255,
    ...options,
    shorterSide,
    channels,
    mean: perChannel("mean", options.mean ?? 0, channels),
    std: perChannel("std", options.std ?? 1, channels),
  };
  for (const name of Object.keys(WORDS) as (keyof typeof WORDS)[]) assertOneOf(name, plan[name], WORDS[name]);
  for (const format of plan.formats) assertOneOf("formats", format, DEFAULTS.formats);
  assertInteger("width", width, 1, MAX_SIDE);
  assertInteger("height", height, 1, MAX_SIDE);
  if (options.shorterSide !== undefined) {
    assertInteger("shorterSide", shorterSide, Math.max(width, height), MAX_SIDE);
    if (fit !== "cover") throw mediaOptionError("shorterSide", "no value unless fit is 'cover'", shorterSide);
  }
  for (const name of ["scale", "mean", "std"] as const) {
    if (isBytes && options[name] !== undefined)
      throw mediaOptionError(name, "no value with dtype UINT8, which keeps 0 to 255", options[name]);
  }
  if (!Number.isFinite(plan.scale)) throw mediaOptionError("scale", "a finite number", plan.scale);
  if (plan.std.includes(0)) throw mediaOptionError("std", "numbers other than 0", options.std);
  if (plan.background.length !== 3) throw mediaOptionError("background", "three numbers", plan.background);
  for (const value of plan.background) assertInteger("background", value, 0, 255);
  assertInteger("maxPixels", plan.maxPixels, 1, 2 ** 31 - 1);
  assertInteger("maxBytes", plan.maxBytes, 1, 2 ** 31 - 1);
  assertInteger("concurrency", plan.concurrency, 1, 1024);
  return plan;
}

/**
 * More decodings at a time than libuv has threads would only wait, in front of the program's file operations. Two for a
 * processor keep it busy while a finished image waits for the event loop.
 */
function defaultConcurrency(): number {
  const pool = Number(process.env.UV_THREADPOOL_SIZE) || 4;
  return Math.max(1, Math.min(2 * availableParallelism(), pool));
}

function perChannel(name: string, value: number | readonly number[], channels: number): readonly number[] {
  const values = typeof value === "number" ? Array.from({ length: channels }, () => value) : value;
  if (values.length === channels && values.every(Number.isFinite)) return values;
  throw mediaOptionError(name, `a number, or ${channels} numbers, one for each channel`, value);
}
