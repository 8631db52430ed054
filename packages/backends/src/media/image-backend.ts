import { readFile } from "node:fs/promises";
import {
  type Backend,
  type ExecutableRequest,
  type ExecutionResult,
  type Executor,
  findModelFile,
  type ModelFiles,
} from "@tritonjs/core/backend";
import {
  DeclaredParameters,
  importInstalled,
  inlineRequests,
  ParameterReader,
} from "@tritonjs/core/internal";
import {
  assertOptions,
  ConcurrencyGate,
  definedMembers,
  errorFor,
  float32ToFloat16,
  fromConfigDataType,
  type ModelConfig,
  type ModelInput,
  type ModelOutput,
  Tensor,
  type TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import type { Sharp, SharpInput } from "sharp";
import { readBmp, readBmpHeader } from "./bmp.js";
import {
  IMAGE_OPTION_TYPES,
  type ImageOptions,
  type ImagePlan,
  imageFormatOf,
  planImage,
} from "./image-options.js";
import { badFile, completeTensors, filesOf, hasRows } from "./media-parameters.js";

/**
 * A backend that prepares images for a model: it decodes JPEG, PNG, WebP, GIF, TIFF, AVIF and BMP, turns the image upright
 * (EXIF), resizes, crops, normalizes, and lays out a tensor. `bind` needs no specifications: the input is `image`
 * (BYTES `[rows, 1]`, the bytes of a file), the output is `pixels` (`[rows, 3, height, width]`).
 *
 * The images of a batch are decoded at the same time by `sharp`, on libuv's threads. A bad file fails its own request
 * with INVALID_ARG.
 *
 * @throws TritonError INVALID_ARG for invalid options. Loading fails with UNAVAILABLE unless `sharp` is installed.
 * @example
 * ```ts
 * triton.bind({
 *   modelName: "pixels",
 *   inferFunc: image({
 *     width: 224,
 *     height: 224,
 *     shorterSide: 256,
 *     mean: [0.485, 0.456, 0.406],
 *     std: [0.229, 0.224, 0.225],
 *   }),
 * });
 * ```
 */
export function image(options: ImageOptions): Backend {
  assertOptions("image()", options, IMAGE_OPTION_TYPES);
  return imageBackend(planImage(options));
}

function imageBackend(plan: ImagePlan): Backend {
  const { inputs, outputs } = tensorsOf(plan);
  const withRows = (spec: TensorSpec): TensorSpec => ({ ...spec, shape: [-1, ...spec.shape] });
  return {
    backendName: "image",
    platform: "",
    isolations: ["inline"],
    describe: () => ({ inputs: inputs.map(withRows), outputs: outputs.map(withRows) }),
    completeConfig: (config) => completeTensors(config, inputs, outputs),
    createExecutor: ({ info }) => imageExecutor(plan, hasRowsOf(plan, info.modelConfig)),
  };
}

/** Pixels have three axes beside that of the rows, files one. */
function hasRowsOf({ inputName, inputDtype }: ImagePlan, config: ModelConfig): boolean {
  if (inputDtype === "BYTES" || config.maxBatchSize > 0) return hasRows(config, inputName);
  return (config.input.find(({ name }) => name === inputName)?.dims.length ?? 3) > 3;
}

/** Prepares one file, as {@link image} does. Errors call the file by the given name. */
type ImagePreparer = (file: Uint8Array, name: string) => Promise<Tensor>;

/**
 * Opens the steps of {@link image} for a backend that has images among other inputs. The function that it returns takes a
 * file and gives the tensor `[1, 3, height, width]`. It fails with INVALID_ARG for a file that is not an image, is
 * damaged, or exceeds a limit.
 *
 * @throws TritonError INVALID_ARG for invalid options, UNAVAILABLE unless `sharp` is installed
 */
export async function openImagePreparer(options: ImageOptions): Promise<ImagePreparer> {
  assertOptions("openImagePreparer()", options, IMAGE_OPTION_TYPES);
  const plan = planImage(options);
  const sharp = await importSharp();
  const gate = new ConcurrencyGate(plan.concurrency, Number.POSITIVE_INFINITY);
  const write = pixelWriter(plan);
  return (file, name) =>
    gate.run(async () => {
      const { pixels, channels } = await decodeImage(sharp, { ...plan, inputName: name }, file, undefined);
      const values = pixelArray(plan.dtype, plan.width * plan.height * plan.channels);
      await write(pixels, channels, values, 0);
      return Tensor.fromElements(plan.dtype, [1, ...shapeOf(plan)], values);
    }, undefined);
}

/** The tensors of a plan, without the axis of the rows. */
function tensorsOf(plan: ImagePlan) {
  const { dtype, inputName, inputDtype, outputName } = plan;
  const shape = inputDtype === "BYTES" ? [1] : [-1, -1, 3];
  const inputs: readonly TensorSpec[] = [{ name: inputName, dtype: inputDtype, shape }];
  const outputs: TensorSpec[] = [{ name: outputName, dtype, shape: shapeOf(plan) }];
  if (plan.originalSize) outputs.push({ name: ORIGINAL_SIZE, dtype: "INT32", shape: [2] });
  return { inputs, outputs };
}

function shapeOf({ width, height, channels, layout }: ImagePlan): number[] {
  return layout === "NCHW" ? [channels, height, width] : [height, width, channels];
}

const PARAMETERS = new DeclaredParameters({
  value: [
    "width",
    "height",
    "fit",
    "shorter_side",
    "position",
    "kernel",
    "background",
    "colour",
    "layout",
    "dtype",
    "scale",
    "mean",
    "std",
    "original_size",
    "animated",
    "formats",
    "fail_on",
    "max_pixels",
    "max_bytes",
    "concurrency",
  ],
});

/**
 * The backend `image` for models of a repository. Its options are parameters with the same names in snake case. Names
 * of tensors, the data type and the size can also come from a written input and output.
 *
 * @throws TritonError INVALID_ARG for unknown parameters and invalid values
 */
export const imageRepositoryBackend = PARAMETERS.declaredBy(async (source) => {
  const { config } = source;
  const read = new ParameterReader(source, PARAMETERS);
  const steps = config.defaultModelFilename === "" ? {} : await readSteps(source);
  const written = {
    width: read.quotient("width"),
    height: read.quotient("height"),
    fit: read.text("fit"),
    shorterSide: read.quotient("shorterSide"),
    position: read.text("position"),
    kernel: read.text("kernel"),
    background: read.numbers("background"),
    colour: read.text("colour"),
    layout: read.text("layout"),
    dtype: read.text("dtype"),
    scale: read.quotient("scale"),
    mean: oneOrMany(read.numbers("mean")),
    std: oneOrMany(read.numbers("std")),
    originalSize: read.flag("originalSize"),
    animated: read.text("animated"),
    formats: read.words("formats"),
    failOn: read.text("failOn"),
    maxPixels: read.quotient("maxPixels"),
    maxBytes: read.quotient("maxBytes"),
    concurrency: read.quotient("concurrency"),
  };
  read.assertNoOthers();
  const chosen = { ...steps, ...definedMembers(written) } as Partial<ImageOptions>;
  return imageBackend(planImage({ ...optionsOfTensors(config, chosen.layout ?? "NCHW"), ...chosen }));
});

/** Options that the written tensors give: their names, data types and sizes. */
function optionsOfTensors(config: ModelConfig, layout: string): ImageOptions {
  const [input] = config.input;
  const output = config.output.find(({ name }) => name !== ORIGINAL_SIZE);
  const tensors = {
    ...(sizeOf(config, output, layout) ?? { width: 0, height: 0 }),
    dtype: dtypeOf(output),
    originalSize: config.output.some(({ name }) => name === ORIGINAL_SIZE) || undefined,
    inputDtype: dtypeOf(input),
    inputName: input?.name,
    outputName: output?.name,
  };
  return definedMembers(tensors) as ImageOptions;
}

/**
 * Reads options from a file of the version's directory, which `default_model_filename` names.
 *
 * @throws TritonError INVALID_ARG for a file without a JSON object of options, NOT_FOUND without the file
 */
async function readSteps(source: ModelFiles): Promise<Partial<ImageOptions>> {
  const { name, config } = source;
  const { path } = await findModelFile(source, [config.defaultModelFilename]);
  let got: string;
  try {
    const steps: unknown = JSON.parse(await readFile(path, "utf8"));
    if (typeof steps === "object" && steps !== null && !Array.isArray(steps)) {
      assertOptions(`model '${name}': ${config.defaultModelFilename}`, steps, IMAGE_OPTION_TYPES);
      return steps;
    }
    got = Array.isArray(steps) ? "a list" : typeof steps;
  } catch (error) {
    if (TritonError.is(error)) throw error;
    got = firstLine(error);
  }
  throw errorFor(
    "INVALID_CONFIG",
    `model '${name}': expected a JSON object of options in ${path}, got ${got}`,
  );
}

function sizeOf(
  { maxBatchSize }: ModelConfig,
  output: ModelOutput | undefined,
  layout: string,
): { readonly width: number; readonly height: number } | undefined {
  const dims = output?.dims ?? [];
  const own = maxBatchSize === 0 && dims.length === 4 ? dims.slice(1) : dims;
  const [height, width] = layout === "NHWC" ? [own[0], own[1]] : [own[1], own[2]];
  return own.length === 3 && width! > 0 && height! > 0 ? { width: width!, height: height! } : undefined;
}

function dtypeOf(tensor: ModelInput | ModelOutput | undefined): string | undefined {
  return tensor && fromConfigDataType(tensor.dataType);
}

function oneOrMany(values: number[] | undefined): number | number[] | undefined {
  return values?.length === 1 ? values[0] : values;
}

/** Name of the output with the size before resizing. */
const ORIGINAL_SIZE = "original_size";

/**
 * Prepares the images of a batch at the same time, as many as the plan allows. `sharp` decodes and resizes on libuv's
 * threads. This thread only brings pixels into the tensor, with a turn of the event loop after each slice.
 *
 * @param hasRows true if tensors have an axis of rows
 */
function imageExecutor(plan: ImagePlan, hasRows: boolean): Executor {
  const { inputName, outputName, width, height, channels, dtype, concurrency } = plan;
  // Unbounded, because only images of running batches wait here. The model's own queue is bounded.
  const gate = new ConcurrencyGate(concurrency, Number.POSITIVE_INFINITY);
  const write = pixelWriter(plan);
  const values = width * height * channels;
  let sharp: SharpModule;
  return inlineRequests(prepare, {
    atOnce: true,
    // Several batches, so that the last image of a batch does not leave threads idle.
    capacity: concurrency,
    // Decoding cannot be interrupted, and reads the memory of its request until it ends.
    mustFinish: true,
    start: async () => {
      sharp = await importSharp();
    },
  });

  /** Waits for all images of a request, even after one has failed, because threads still read the others. */
  async function prepare({ inputs }: ExecutableRequest, isOpen: () => boolean): Promise<ExecutionResult> {
    const images = imagesOf(inputs.get(inputName), plan, hasRows);
    const rows = images.length;
    const pixels = pixelArray(dtype, rows * values);
    const sizes = new Int32Array(2 * rows);
    const settled = await Promise.allSettled(
      images.map((given, row) =>
        gate.run(async () => {
          if (!isOpen()) return;
          const image = await decodeImage(sharp, plan, given, rows === 1 ? undefined : row);
          if (!isOpen()) return;
          if (image.originalSize !== undefined) sizes.set(image.originalSize, 2 * row);
          await write(image.pixels, image.channels, pixels, row * values);
        }, undefined),
      ),
    );
    const failed = settled.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const batch = hasRows ? [rows] : [];
    const outputs = new Map([[outputName, Tensor.fromElements(dtype, [...batch, ...shapeOf(plan)], pixels)]]);
    if (plan.originalSize) outputs.set(ORIGINAL_SIZE, Tensor.fromElements("INT32", [...batch, 2], sizes));
    return outputs;
  }
}

type SharpModule = typeof import("sharp")["default"];

/** @throws TritonError UNAVAILABLE if `sharp` is not installed, or does not load on this machine */
async function importSharp(): Promise<SharpModule> {
  let cause: unknown;
  try {
    const module = await importInstalled<{ default: SharpModule }>("sharp", import.meta.url);
    if (module !== undefined) return module.default;
  } catch (error) {
    cause = error;
  }
  const why = cause === undefined ? "it is not installed" : firstLine(cause);
  const text = `cannot load sharp (${why}): install it next to @tritonjs/backends`;
  throw errorFor("PACKAGE_NOT_INSTALLED", text, { cause });
}

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
  given: Uint8Array | PixelImage,
  row: number | undefined,
): Promise<DecodedImage> {
  const refuse = (text: string, cause?: unknown) => badFile(plan.inputName, row, text, cause);
  const { maxBytes, maxPixels, formats } = plan;
  if (!(given instanceof Uint8Array)) return await resizePixels(sharp, plan, given, refuse);
  const file = given;
  if (file.byteLength > maxBytes) {
    throw refuse(`expected an image of at most ${maxBytes} bytes, got ${file.byteLength}`);
  }
  const format = imageFormatOf(file);
  if (format === undefined || !formats.includes(format)) {
    const got = format ?? `${file.byteLength} bytes of something else`;
    throw refuse(`expected an image (${formats.join(", ")}), got ${got}`);
  }
  try {
    const source =
      format === "bmp"
        ? await bmpSource(sharp, file, maxPixels)
        : sharp(file as SharpInput, { failOn: plan.failOn, limitInputPixels: maxPixels });
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
    if ((error as Error).message.includes(PIXEL_LIMIT)) {
      throw refuse(`expected an image of at most ${maxPixels} pixels, got a larger one`, error);
    }
    if (TritonError.is(error)) throw error;
    throw refuse(`cannot decode the ${format} image: ${firstLine(error)}`, error);
  }
}

/** An image that the client has decoded. */
interface PixelImage {
  readonly height: number;
  readonly width: number;
  /** Values from 0 to 255, three for each pixel. */
  readonly values: Uint8Array | Float32Array;
}

/** The images of an input: files, or pixels [height, width, 3] for each row. */
function imagesOf(
  input: Tensor | undefined,
  { inputName, inputDtype }: ImagePlan,
  hasRows: boolean,
): readonly (Uint8Array | PixelImage)[] {
  if (inputDtype === "BYTES") return filesOf(input, inputName, hasRows);
  const { shape, elements } = input!;
  const [height, width, channels] = shape.slice(-3) as [number, number, number];
  if (channels !== 3) throw badFile(inputName, undefined, `expected 3 channels at the end, got ${channels}`);
  const rows = hasRows ? shape[0]! : 1;
  const size = height * width * channels;
  const values = elements as Uint8Array | Float32Array;
  return Array.from({ length: rows }, (_, row) => ({
    height,
    width,
    values: values.subarray(row * size, (row + 1) * size),
  }));
}

async function resizePixels(
  sharp: SharpModule,
  plan: ImagePlan,
  { height, width, values }: PixelImage,
  refuse: (text: string, cause?: unknown) => TritonError,
): Promise<DecodedImage> {
  if (height === 0 || width === 0) throw refuse(`expected an image with pixels, got ${height}x${width}`);
  if (height * width > plan.maxPixels || Math.max(height, width) > MAX_SIDE) {
    throw refuse(`expected an image of at most ${plan.maxPixels} pixels, got ${height}x${width}`);
  }
  const strange = values.find((value) => !(value >= 0 && value <= 255));
  if (strange !== undefined) throw refuse(`expected values from 0 to 255, got ${strange}`);
  const pixels = values instanceof Uint8Array ? values : Uint8Array.from(values, Math.round);
  const source = sharp(pixels, { raw: { width, height, channels: 3 } });
  const { data, info } = await sized(source, plan).raw().toBuffer({ resolveWithObject: true });
  return {
    pixels: data,
    channels: info.channels,
    originalSize: plan.originalSize ? [height, width] : undefined,
  };
}

/** Part of the text with which `sharp` refuses an image of too many pixels. */
const PIXEL_LIMIT = "exceeds pixel limit";

/** `sharp` does not read BMP. */
async function bmpSource(sharp: SharpModule, file: Uint8Array, maxPixels: number): Promise<Sharp> {
  const header = readBmpHeader(file);
  const { width, height } = header;
  if (width * height > maxPixels) throw new Error(PIXEL_LIMIT);
  const { channels, pixels } = await readBmp(file, header);
  return sharp(pixels, { raw: { width, height, channels } });
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

type PixelArray = Float32Array | Uint16Array | Uint8Array;

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
export function pixelWriter(plan: ImagePlan) {
  const { width, height, channels, colour, layout } = plan;
  const count = width * height;
  const tables = Array.from({ length: channels }, (_, channel) => tableOf(plan, channel));
  // Distance between the channels of a pixel, and between pixels.
  const [step, stride] = layout === "NCHW" ? [count, 1] : [1, channels];
  const pixelsASlice = Math.max(1, Math.floor(VALUES_A_SLICE / 3));
  return async (
    pixels: Uint8Array,
    sourceChannels: number,
    target: PixelArray,
    offset: number,
  ): Promise<void> => {
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
