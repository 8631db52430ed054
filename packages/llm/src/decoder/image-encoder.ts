import { createHash } from "node:crypto";
import type { ImageOptions, openImagePreparer } from "@tritonjs/backends/media";
import type { OnnxSession } from "@tritonjs/backends/onnxruntime";
import { errorFor, float16ToFloat32, float32ToFloat16, Tensor, type TritonError } from "@tritonjs/protocol";
import { type ChatImage, invalidImage } from "../chat/image-parts.js";
import type { TextTokenizer } from "../text-tokenizer.js";
import type { PromptImages, TokenEmbedding } from "./forward-pass.js";
import type { ImageFiles, ModelFileObject } from "./model-files.js";

/** Inputs of the decoder that an image becomes: rows of as many numbers as a token's. */
interface EncodedImage {
  /** Stands for the image in place of tokens: a negative number of 52 bits of the file's hash. */
  readonly key: number;
  readonly values: Float32Array | Uint16Array;
  /** Number of places that the image takes in a prompt. */
  readonly count: number;
}

/** A prompt of tokens and images. */
interface ImagePrompt {
  /** Each place of an image has the image's key. So prompts share a beginning only if it has the same images. */
  readonly tokens: readonly number[];
  readonly images: PromptImages;
}

/** Size of encoded images that are kept for later messages of their chats. */
const KEPT_BYTES = 64 * 1024 * 1024;

/** How a family of models writes an image in a prompt. */
interface ImageSpelling {
  /** Text that the chat template writes. */
  readonly text: string;
  /** Text that it becomes, with one token for the image. */
  readonly prompt: string;
}

/**
 * Encodes the images of prompts with a graph of their own:
 *
 * ```
 * file --media--> pixel_values --vision_encoder--> rows of numbers
 *                                                     |
 * "Look: <image> What is it?" --embed_tokens--> t t t i i i i t t t t --decoder--> ...
 * ```
 *
 * The token of an image is repeated for each row that the graph returns.
 */
export class ImageEncoder {
  readonly #kept = new Map<string, Promise<EncodedImage>>();
  #keptBytes = 0;

  private constructor(
    private readonly parts: {
      readonly session: OnnxSession;
      readonly prepare: Awaited<ReturnType<typeof openImagePreparer>>;
      readonly token: number;
      readonly spelling: ImageSpelling;
      readonly maxImages: number;
      readonly datatype: "FP32" | "FP16";
    },
  ) {}

  /**
   * @param embedding the graph for tokens, whose data type the decoder takes
   * @throws TritonError INVALID_ARG for files that do not fit together, UNAVAILABLE without `sharp`
   */
  static async open(
    files: ImageFiles,
    session: OnnxSession,
    embedding: OnnxSession,
    tokenizer: TextTokenizer,
    maxImages: number,
  ): Promise<ImageEncoder> {
    checkInputs(files, session);
    const { openImagePreparer } = await import("@tritonjs/backends/media");
    const prepare = await openImagePreparer(imageOptions(files, session));
    const { image_token_id, image_token_index = image_token_id } = files.config;
    const token = image_token_index as number;
    const known = Number.isSafeInteger(token) && tokenizer.tokens[token];
    if (!known) {
      const text = `cannot read config.json: expected 'image_token_id' to be a token number, got ${JSON.stringify(token)}`;
      throw errorFor("INVALID_MODEL", text);
    }
    const datatype = embedding.outputs[0]!.dtype === "FP16" ? "FP16" : "FP32";
    const spelling = spellingOf(files.config, known, tokenizer);
    return new ImageEncoder({ session, prepare, token, spelling, maxImages, datatype });
  }

  /** Text that stands for an image in the prompt of a chat template. */
  get imageText(): string {
    return this.parts.spelling.text;
  }

  /** The text of a prompt as the model was trained on it. */
  spell(prompt: string): string {
    const { text, prompt: spelled } = this.parts.spelling;
    return text === spelled ? prompt : prompt.replaceAll(text, () => spelled);
  }

  /**
   * Puts images into a prompt.
   *
   * @throws TritonError INVALID_ARG for another number of images than the prompt has, and for files that are not images
   */
  async encode(prompt: readonly number[], images: readonly ChatImage[]): Promise<ImagePrompt> {
    const places = prompt.filter((token) => token === this.parts.token).length;
    if (images.length > this.parts.maxImages) {
      throw invalidImage(
        "messages",
        `at most ${this.parts.maxImages} images in a request`,
        String(images.length),
      );
    }
    if (places !== images.length) {
      const expected = `${images.length} places for images (${this.imageText}) in the prompt, as many as images`;
      throw invalidImage("messages", expected, String(places));
    }
    const encoded: EncodedImage[] = [];
    // One at a time, because the graph runs on the thread of the running texts, whose steps come in between.
    for (const image of images) encoded.push(await this.#encodeOnce(image));
    const tokens: number[] = [];
    const parts: { readonly start: number; readonly image: EncodedImage }[] = [];
    for (const token of prompt) {
      const image = token === this.parts.token ? encoded[parts.length]! : undefined;
      if (image === undefined) tokens.push(token);
      else {
        parts.push({ start: tokens.length, image });
        for (let i = 0; i < image.count; i++) tokens.push(image.key);
      }
    }
    return { tokens, images: { write: (...args) => writeImages(parts, ...args) } };
  }

  /** An image that several messages or chats have is encoded once, as long as there is room. */
  async #encodeOnce(image: ChatImage): Promise<EncodedImage> {
    const hash = createHash("sha256").update(image.file).digest();
    const name = hash.toString("base64");
    const found = this.#kept.get(name);
    const encoding = found ?? this.#encode(image, hash);
    // The most recently used one is the last.
    this.#kept.delete(name);
    this.#kept.set(name, encoding);
    if (found !== undefined) return await encoding;
    try {
      const encoded = await encoding;
      this.#keptBytes += encoded.values.byteLength;
      await this.#dropOld();
      return encoded;
    } catch (error) {
      this.#kept.delete(name);
      throw error;
    }
  }

  async #dropOld(): Promise<void> {
    for (const [name, encoding] of this.#kept) {
      if (this.#keptBytes <= KEPT_BYTES) return;
      this.#kept.delete(name);
      const dropped = await encoding.catch(() => undefined);
      this.#keptBytes -= dropped?.values.byteLength ?? 0;
    }
  }

  async #encode({ path, file }: ChatImage, hash: Buffer): Promise<EncodedImage> {
    const pixels = await this.parts.prepare(file, path);
    const [, channels, height, width] = pixels.shape as [number, number, number, number];
    const inputs = new Map<string, Tensor>();
    for (const { name, shape, dtype } of this.parts.session.inputs) {
      if (name === PIXELS) {
        const dims = shape.length === 5 ? [1, 1, channels, height, width] : pixels.shape;
        inputs.set(name, Tensor.fromElements(pixels.datatype, dims, pixels.elements));
        continue;
      }
      const dims = shape.length === 4 ? [1, 1, height, width] : [1, height, width];
      const ones = dtype === "BOOL" ? new Uint8Array(height * width) : new BigInt64Array(height * width);
      inputs.set(name, Tensor.fromElements(dtype, dims, ones.fill(1 as never) as Uint8Array<ArrayBuffer>));
    }
    const [output] = this.parts.session.outputs;
    const features = (await this.parts.session.runTensors(inputs, [output!.name])).get(output!.name)!;
    const values = converted(features, this.parts.datatype);
    // 52 bits, so that nobody finds an image that passes for another's.
    const key = -1 - (hash.readUIntBE(0, 6) * 16 + (hash[6]! & 15));
    return { key, values, count: values.length / features.shape.at(-1)! };
  }
}

/** Opens the graph that turns tokens into inputs of a decoder. */
export function tokenEmbedding(session: OnnxSession, file: string): TokenEmbedding {
  const [input] = session.inputs;
  const [output] = session.outputs;
  const isFit = session.inputs.length === 1 && output?.shape.length === 3 && input?.shape.length === 2;
  if (!isFit || (output.dtype !== "FP32" && output.dtype !== "FP16")) {
    const text = `cannot use ${file}: expected an input [rows, tokens] and an output [rows, tokens, size] of FP32 or FP16`;
    throw errorFor("INVALID_MODEL", `${text}, got ${session.inputs.map(({ name }) => name).join(", ")}`);
  }
  return {
    async embed(tokens) {
      const { shape, elements } = tokens;
      const given =
        input.dtype === tokens.datatype
          ? tokens
          : Tensor.fromElements("INT64", shape, BigInt64Array.from(elements as Int32Array, BigInt));
      return (await session.runTensors(new Map([[input.name, given]]), [output.name])).get(output.name)!;
    },
  };
}

function writeImages(
  parts: readonly { readonly start: number; readonly image: EncodedImage }[],
  ...[first, count, target, offset]: Parameters<PromptImages["write"]>
): void {
  for (const { start, image } of parts) {
    const from = Math.max(first, start);
    const to = Math.min(first + count, start + image.count);
    if (from >= to) continue;
    const size = image.values.length / image.count;
    const rows = image.values.subarray((from - start) * size, (to - start) * size);
    target.set(rows as Float32Array, offset + (from - first) * size);
  }
}

function converted({ datatype, elements }: Tensor, wanted: "FP32" | "FP16"): Float32Array | Uint16Array {
  const values = elements as Float32Array | Uint16Array;
  if (datatype === wanted) return values;
  return wanted === "FP16"
    ? float32ToFloat16(values as Float32Array)
    : float16ToFloat32(values as Uint16Array);
}

const PIXELS = "pixel_values";
const PIXEL_MASK = "pixel_attention_mask";

/** @throws TritonError INVALID_ARG for a graph with other inputs than pixels and their mask */
function checkInputs({ encoder }: ImageFiles, { inputs, outputs }: OnnxSession): void {
  const names = inputs.map(({ name }) => name);
  const other = names.find((name) => name !== PIXELS && name !== PIXEL_MASK);
  if (names.includes(PIXELS) && other === undefined && outputs.length > 0) return;
  const got =
    other === "image_grid_thw" ? "image_grid_thw of Qwen2-VL, which is not supported" : names.join(", ");
  const text = `cannot use ${encoder} as an encoder of images: expected the inputs ${PIXELS} and ${PIXEL_MASK}, got ${got}`;
  throw errorFor("INVALID_MODEL", text);
}

/** `resample` of Pillow, by its numbers. */
const KERNELS: Readonly<Record<number, ImageOptions["kernel"]>> = {
  0: "nearest",
  1: "lanczos3",
  2: "linear",
  3: "cubic",
};

/**
 * The steps of `preprocessor_config.json`. Images become one square each, without the tiles that some families add for
 * large images.
 */
function imageOptions({ preprocessor }: ImageFiles, session: OnnxSession): ImageOptions {
  const { shape, dtype } = session.inputs.find(({ name }) => name === PIXELS)!;
  const flag = (name: string) => preprocessor[name] !== false;
  const numbers = (name: string) => preprocessor[name] as readonly number[] | undefined;
  const { size, shorter } = sizeOf(preprocessor, shape);
  return {
    ...size,
    ...(shorter === undefined ? { fit: "fill" } : { fit: "cover", shorterSide: shorter }),
    kernel: KERNELS[preprocessor.resample as number] ?? "cubic",
    dtype: dtype === "FP16" ? "FP16" : "FP32",
    scale: flag("do_rescale") ? ((preprocessor.rescale_factor as number | undefined) ?? 1 / 255) : 1,
    ...(flag("do_normalize") && { mean: numbers("image_mean") ?? 0, std: numbers("image_std") ?? 1 }),
    background: [255, 255, 255],
  };
}

/** Size of the tensor, and the length of the shorter side before a crop. */
function sizeOf(
  preprocessor: ModelFileObject,
  shape: readonly number[],
): { size: { width: number; height: number }; shorter: number | undefined } {
  const { size, crop_size: crop, do_center_crop: crops, max_image_size: most } = preprocessor;
  const square = (side: unknown) => ({ width: side as number, height: side as number });
  const sizes = (value: unknown) => {
    if (typeof value === "number") return square(value);
    const { height, width } = Object(value) as { height?: number; width?: number };
    return height && width ? { width, height } : undefined;
  };
  const cropped = crops === false ? undefined : sizes(crop);
  if (cropped !== undefined) {
    const { shortest_edge = typeof size === "number" ? size : undefined } = Object(size);
    return { size: cropped, shorter: Math.max(shortest_edge ?? 0, cropped.width, cropped.height) };
  }
  const longest = (Object(most) as { longest_edge?: number }).longest_edge;
  const found = longest !== undefined ? square(longest) : sizes(size);
  const [height = 0, width = 0] = shape.slice(-2);
  if (found !== undefined) return { size: found, shorter: undefined };
  if (height > 0 && width > 0) return { size: { width, height }, shorter: undefined };
  const text = `cannot read preprocessor_config.json: expected 'size' to have height and width, got ${JSON.stringify(size)}`;
  throw errorFor("INVALID_MODEL", text);
}

/** How the processor of a family writes an image. In most families it is the token itself. */
function spellingOf(config: ModelFileObject, token: string, tokenizer: TextTokenizer): ImageSpelling {
  switch (config.model_type) {
    case "idefics3":
    case "smolvlm": {
      const around = "<fake_token_around_image>";
      return { text: token, prompt: `${around}<global-img>${token}${around}` };
    }
    case "gemma3": {
      const begin = tokenizer.tokens[config.boi_token_index as number] ?? "<start_of_image>";
      const end = tokenizer.tokens[config.eoi_token_index as number] ?? "<end_of_image>";
      return { text: begin, prompt: `\n\n${begin}${token}${end}\n\n` };
    }
    default:
      return { text: token, prompt: token };
  }
}

/** Creates the error for images to a model without an encoder for them. */
export function takesNoImages(modelName: string, path: string): TritonError {
  return errorFor(
    "INVALID_INPUT",
    `'${path}': expected text, got an image: model '${modelName}' takes only text`,
  );
}
