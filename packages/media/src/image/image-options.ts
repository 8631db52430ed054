/** Way in which an image gets the size of the tensor. */
export type ImageFit = "cover" | "contain" | "fill";

/** Filter of the resizing. All but `nearest` widen it when they shrink an image (antialiasing). */
export type ImageKernel = "nearest" | "linear" | "cubic" | "mitchell" | "lanczos2" | "lanczos3";

/** Encodings that can be read. */
export type ImageFormat = "jpeg" | "png" | "webp" | "gif" | "tiff" | "avif";

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
  /** Name of the input, BYTES [1]. @default "image" */
  readonly inputName?: string;
  /** Name of the output. @default "pixels" */
  readonly outputName?: string;
}

/** Part of an image that a crop keeps; `attention` and `entropy` look for the most interesting one. */
export type ImagePosition = "centre" | "top" | "right" | "bottom" | "left" | "attention" | "entropy";
