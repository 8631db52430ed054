import { availableParallelism } from "node:os";
import { optionTypes } from "@tritonjs/protocol";
import { assertInteger, assertOneOf, mediaOptionError } from "./media-parameters.js";

/** Way in which an image gets the size of the tensor. */
type ImageFit = "cover" | "contain" | "fill";

/** Filter of the resizing. All but `nearest` widen it when they shrink an image (antialiasing). */
type ImageKernel = "nearest" | "linear" | "cubic" | "mitchell" | "lanczos2" | "lanczos3";

/** Encodings that can be read. */
type ImageFormat = "jpeg" | "png" | "webp" | "gif" | "tiff" | "avif" | "bmp";

/** Options of {@link image}. */
export interface ImageOptions {
  /** Width of the tensor in pixels, from 1 to 16,384. */
  readonly width: number;
  /** Height of the tensor in pixels, from 1 to 16,384. */
  readonly height: number;
  /**
   * `cover` keeps the proportions and crops the parts outside; `contain` keeps them and fills the rest with
   * `background`; `fill` stretches the image.
   *
   * @default "cover"
   */
  readonly fit?: ImageFit;
  /**
   * Length to which the shorter side is resized before the crop, at least `width` and `height`: 256 for models that
   * were evaluated with a resize to 256 and a crop to 224. Only with `fit` `cover`.
   *
   * @default the least that covers the tensor
   */
  readonly shorterSide?: number;
  /** Part of the image that a crop keeps. @default "centre" */
  readonly position?: ImagePosition;
  /** Filter of the resizing. @default "linear", with which most models are trained ("bilinear") */
  readonly kernel?: ImageKernel;
  /**
   * Red, green and blue from 0 to 255: behind transparent pixels, and beside the image with `contain`.
   *
   * @default [0, 0, 0]
   */
  readonly background?: readonly [number, number, number];
  /** Order of the channels; `grey` is one channel, 0.299 red + 0.587 green + 0.114 blue. @default "RGB" */
  readonly colour?: "RGB" | "BGR" | "grey";
  /** Order of the axes; `N` is the axis of the rows. @default "NCHW" */
  readonly layout?: "NCHW" | "NHWC";
  /** Data type of the output. @default "FP32" */
  readonly dtype?: "FP32" | "FP16" | "UINT8";
  /** Factor of the values from 0 to 255, before `mean` and `std`. @default 1/255; not with `UINT8` */
  readonly scale?: number;
  /** Subtracted from each scaled channel, in the order of `colour`; one number for all. @default 0; not with `UINT8` */
  readonly mean?: number | readonly number[];
  /** Divides each channel after `mean` is subtracted; one number for all. @default 1; not with `UINT8` */
  readonly std?: number | readonly number[];
  /**
   * True for an output `original_size`, INT32 [2]: height and width of the upright image before resizing.
   *
   * @default false
   */
  readonly originalSize?: boolean;
  /** Refuses a file of several frames or pages, or takes its first one. @default "refuse" */
  readonly animated?: "refuse" | "first";
  /** Encodings that are accepted, by the first bytes of the file. @default all */
  readonly formats?: readonly ImageFormat[];
  /**
   * Damage for which a file is refused: `warning` for any that the decoder notices, `error` for damage that it cannot
   * repair, `truncated` for missing parts only.
   *
   * @default "warning"
   */
  readonly failOn?: "truncated" | "error" | "warning";
  /** Largest image before resizing, in pixels: a small file can hold a huge image. @default 50,000,000 */
  readonly maxPixels?: number;
  /** Largest file in bytes. @default 33,554,432 (32 MiB) */
  readonly maxBytes?: number;
  /**
   * Number of images that an instance decodes at the same time, on libuv's threads. Others wait.
   *
   * @default twice the number of processors, at most the size of libuv's pool (4, or UV_THREADPOOL_SIZE)
   */
  readonly concurrency?: number;
  /**
   * `BYTES` for encoded files; `UINT8` or `FP32` for images that the client has decoded: [height, width, 3] from 0 to 255,
   * in the order RGB. `FP32` is rounded.
   *
   * @default "BYTES"
   */
  readonly inputDtype?: "BYTES" | "UINT8" | "FP32";
  /** Name of the input, BYTES [1]. @default "image" */
  readonly inputName?: string;
  /** Name of the output. @default "pixels" */
  readonly outputName?: string;
}

export const IMAGE_OPTION_TYPES = optionTypes<ImageOptions>({
  width: "number",
  height: "number",
  fit: "string",
  shorterSide: "number",
  position: "string",
  kernel: "string",
  background: "array",
  colour: "string",
  layout: "string",
  dtype: "string",
  scale: "number",
  mean: ["array", "number"],
  std: ["array", "number"],
  originalSize: "boolean",
  animated: "string",
  formats: "array",
  failOn: "string",
  maxPixels: "number",
  maxBytes: "number",
  concurrency: "number",
  inputDtype: "string",
  inputName: "string",
  outputName: "string",
});

/** Part of an image that a crop keeps; `attention` and `entropy` look for the most interesting one. */
type ImagePosition = "centre" | "top" | "right" | "bottom" | "left" | "attention" | "entropy";

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
  formats: ["jpeg", "png", "webp", "gif", "tiff", "avif", "bmp"],
  // A wrong picture is worse than an error.
  failOn: "warning",
  // Photographs of telephones have 12 to 50 million pixels. Decoded, this many take 150 MB.
  maxPixels: 50_000_000,
  maxBytes: 32 * 2 ** 20,
  inputDtype: "BYTES",
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
  inputDtype: ["BYTES", "UINT8", "FP32"],
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

/**
 * Recognizes the encoding of an image by its first bytes. Only files that it recognizes reach the decoder, which reads
 * further formats, SVG among them.
 *
 * @returns undefined for anything else
 */
export function imageFormatOf(file: Uint8Array): ImageFormat | undefined {
  if (file.length < 12) return undefined;
  if (file[0] === 0xff && file[1] === 0xd8 && file[2] === 0xff) return "jpeg";
  const first = latin1(file, 0, 4);
  if (first.startsWith("BM")) return "bmp";
  if (first === "\x89PNG") return "png";
  if (first === "GIF8") return "gif";
  if (first === "RIFF" && latin1(file, 8, 12) === "WEBP") return "webp";
  if (first === "II*\0" || first === "MM\0*" || first === "II+\0" || first === "MM\0+") return "tiff";
  if (latin1(file, 4, 8) === "ftyp" && /^avi[fs]|^mif1|^miaf/.test(latin1(file, 8, 12))) return "avif";
  return undefined;
}

function latin1(file: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...file.subarray(from, to));
}
