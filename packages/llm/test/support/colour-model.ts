import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InferenceSession, Tensor } from "onnxruntime-node";
import sharp from "sharp";
import { type OnnxTensor, onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";

/*
 * A model that says which colour images have, in the three files of LLaVA: an encoder of images, one of tokens, and a
 * decoder. Its weights are written by hand. A token after " is" is the colour that the attention to all places sees.
 */

/** Side of an image in pixels, and of the parts of it that the encoder sees. */
export const SIDE = 32;
const PART = 16;
const PARTS = (SIDE / PART) ** 2;

const WORDS = [
  ...["<image>", "<end>", " The", " colour", " is", "."],
  ...[" red", " green", " blue", " unknown"],
  "assistant:",
];
/** Numbers of the tokens of single bytes come first. */
const FIRST_WORD = 256;
const VOCABULARY = FIRST_WORD + WORDS.length;
const CHANNELS = 3;
const SIZE = VOCABULARY + CHANNELS;
const CONTEXT = 512;
const idOf = (word: string) => FIRST_WORD + WORDS.indexOf(word);

const PROCESSOR = {
  do_resize: true,
  size: { height: SIDE, width: SIDE },
  resample: 3,
  do_rescale: true,
  rescale_factor: 1 / 255,
  do_normalize: true,
  image_mean: [0.5, 0.5, 0.5],
  image_std: [0.5, 0.5, 0.5],
};

/** The text of a message before its images, or between them. */
const TEMPLATE =
  "{% for message in messages %}{{ message['role'] }}: {% for part in message['content'] %}" +
  "{% if part['type'] == 'image' %}<image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}{{ '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}assistant:{% endif %}";

/** Writes the model into a new directory. */
export function writeColourModel(config: object = {}): string {
  const directory = mkdtempSync(join(tmpdir(), "colour-model-"));
  mkdirSync(join(directory, "onnx"));
  const json = (name: string, value: object) => writeFileSync(join(directory, name), JSON.stringify(value));
  writeFileSync(join(directory, "onnx/vision_encoder.onnx"), encoder());
  writeFileSync(join(directory, "onnx/embed_tokens.onnx"), embedding());
  writeFileSync(join(directory, "onnx/decoder_model_merged.onnx"), decoder());
  json("config.json", {
    model_type: "llava",
    image_token_index: idOf("<image>"),
    text_config: { max_position_embeddings: CONTEXT, eos_token_id: idOf("<end>") },
    ...config,
  });
  json("preprocessor_config.json", PROCESSOR);
  json("tokenizer_config.json", { chat_template: TEMPLATE });
  json("tokenizer.json", {
    added_tokens: WORDS.map((content, i) => ({
      ...{ id: FIRST_WORD + i, content, special: content.startsWith("<") },
      ...{ single_word: false, lstrip: false, rstrip: false, normalized: false },
    })),
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    post_processor: null,
    model: { type: "BPE", vocab: bytes(), merges: [] },
  });
  return directory;
}

/** The characters that byte-level vocabularies have for bytes. */
function bytes(): Record<string, number> {
  const isPrinted = (byte: number) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let others = 256;
  return Object.fromEntries(
    Array.from({ length: 256 }, (_, byte) => [String.fromCharCode(isPrinted(byte) ? byte : others++), byte]),
  );
}

/** The mean colour of each part of an image. */
function encoder(): Uint8Array {
  const toSize = new Float32Array(CHANNELS * SIZE);
  for (let i = 0; i < CHANNELS; i++) toSize[i * SIZE + VOCABULARY + i] = 1;
  const square = { ints: [PART, PART] };
  return onnxModel({
    name: "vision_encoder",
    opset: 17,
    inputs: [{ name: "pixel_values", elemType: "FLOAT", dims: ["images", CHANNELS, SIDE, SIDE] }],
    outputs: [{ name: "image_features", elemType: "FLOAT", dims: ["images", PARTS, SIZE] }],
    initializers: [
      { name: "toSize", dims: [CHANNELS, SIZE], data: toSize },
      shape("parts", 0, CHANNELS, PARTS),
    ],
    nodes: [
      {
        op: "AveragePool",
        inputs: ["pixel_values"],
        outputs: ["means"],
        attributes: { kernel_shape: square, strides: square },
      },
      { op: "Reshape", inputs: ["means", "parts"], outputs: ["channels"] },
      {
        op: "Transpose",
        inputs: ["channels"],
        outputs: ["colours"],
        attributes: { perm: { ints: [0, 2, 1] } },
      },
      { op: "MatMul", inputs: ["colours", "toSize"], outputs: ["image_features"] },
    ],
  });
}

function embedding(): Uint8Array {
  const table = new Float32Array(VOCABULARY * SIZE);
  for (let id = 0; id < VOCABULARY; id++) table[id * SIZE + id] = 1;
  return onnxModel({
    name: "embed_tokens",
    opset: 17,
    inputs: [{ name: "input_ids", elemType: "INT64", dims: ["rows", "tokens"] }],
    outputs: [{ name: "inputs_embeds", elemType: "FLOAT", dims: ["rows", "tokens", SIZE] }],
    initializers: [{ name: "table", dims: [VOCABULARY, SIZE], data: table }],
    nodes: [{ op: "Gather", inputs: ["table", "input_ids"], outputs: ["inputs_embeds"] }],
  });
}

/** Attention to all places, by weights that depend on the place alone, beside a table of what follows a token. */
function decoder(): Uint8Array {
  const values = new Float32Array(SIZE * CHANNELS);
  for (let i = 0; i < CHANNELS; i++) values[(VOCABULARY + i) * CHANNELS + i] = 1;
  const colours = new Float32Array(CHANNELS * VOCABULARY);
  for (const [i, word] of [" red", " green", " blue"].entries()) colours[i * VOCABULARY + idOf(word)] = 40;
  const follows = new Float32Array(SIZE * VOCABULARY);
  const follow = (word: string, next: string, score: number) => {
    follows[idOf(word) * VOCABULARY + idOf(next)] = score;
  };
  follow("assistant:", " The", 100);
  follow(" The", " colour", 100);
  follow(" colour", " is", 100);
  for (const colour of [" red", " green", " blue", " unknown"]) {
    follow(" is", colour, colour === " unknown" ? 100.5 : 100);
    follow(colour, ".", 100);
  }
  follow(".", "<end>", 100);
  const places = Float32Array.from({ length: CONTEXT }, (_, i) => Math.sin(i * 12.9898));
  const value = (name: string, elemType: "FLOAT" | "INT64", ...dims: readonly (number | string)[]) => ({
    name,
    elemType,
    dims,
  });
  const node = (op: string, inputs: readonly string[], output: string, attributes = {}) => ({
    ...{ op, inputs, outputs: [output], attributes },
  });
  const int = (value: number) => ({ int: value });
  return onnxModel({
    name: "decoder_model_merged",
    opset: 17,
    inputs: [
      value("inputs_embeds", "FLOAT", "rows", "tokens", SIZE),
      value("attention_mask", "INT64", "rows", "width"),
      value("position_ids", "INT64", "rows", "tokens"),
      value("past_key_values.0.key", "FLOAT", "rows", 1, "past", 1),
      value("past_key_values.0.value", "FLOAT", "rows", 1, "past", CHANNELS),
    ],
    outputs: [
      value("logits", "FLOAT", "rows", "tokens", VOCABULARY),
      value("present.0.key", "FLOAT", "rows", 1, "width", 1),
      value("present.0.value", "FLOAT", "rows", 1, "width", CHANNELS),
    ],
    initializers: [
      { name: "places", dims: [CONTEXT], data: places },
      { name: "values", dims: [SIZE, CHANNELS], data: values },
      { name: "colours", dims: [CHANNELS, VOCABULARY], data: colours },
      { name: "follows", dims: [SIZE, VOCABULARY], data: follows },
      shape("axis1", 1),
      shape("axes13", 1, 3),
      shape("axes12", 1, 2),
      scalar("zero", 0n),
      scalar("one", 1n),
      { name: "far", dims: [], data: Float32Array.of(-1e9) },
      { name: "last", dims: [], data: Float32Array.of(1) },
    ],
    nodes: [
      node("Gather", ["places", "position_ids"], "keys"),
      node("Unsqueeze", ["keys", "axes13"], "newKeys"),
      node("MatMul", ["inputs_embeds", "values"], "seen"),
      node("Unsqueeze", ["seen", "axis1"], "newValues"),
      node("Concat", ["past_key_values.0.key", "newKeys"], "present.0.key", { axis: int(2) }),
      node("Concat", ["past_key_values.0.value", "newValues"], "present.0.value", { axis: int(2) }),
      node("Transpose", ["present.0.key"], "scores", { perm: { ints: [0, 1, 3, 2] } }),
      node("Shape", ["position_ids"], "given"),
      node("Gather", ["given", "one"], "tokens"),
      node("Shape", ["attention_mask"], "seenShape"),
      node("Gather", ["seenShape", "one"], "width"),
      node("Sub", ["width", "tokens"], "past"),
      node("Range", ["past", "width", "one"], "rows"),
      node("Range", ["zero", "width", "one"], "columns"),
      node("Unsqueeze", ["rows", "axis1"], "row"),
      node("Greater", ["columns", "row"], "isLater"),
      node("Cast", ["isLater"], "later", { to: int(1) }),
      node("Cast", ["attention_mask"], "mask", { to: int(1) }),
      node("Sub", ["last", "mask"], "hidden"),
      node("Unsqueeze", ["hidden", "axes12"], "hiddenColumns"),
      node("Add", ["later", "hiddenColumns"], "off"),
      node("Mul", ["off", "far"], "bias"),
      node("Add", ["scores", "bias"], "biased"),
      node("Softmax", ["biased"], "weights", { axis: int(-1) }),
      node("MatMul", ["weights", "present.0.value"], "attended"),
      node("Squeeze", ["attended", "axis1"], "colour"),
      node("MatMul", ["colour", "colours"], "named"),
      node("MatMul", ["inputs_embeds", "follows"], "next"),
      node("Add", ["named", "next"], "logits"),
    ],
  });
}

function shape(name: string, ...values: readonly number[]): OnnxTensor {
  return { name, dims: [values.length], data: BigInt64Array.from(values, BigInt) };
}

function scalar(name: string, value: bigint): OnnxTensor {
  return { name, dims: [], data: BigInt64Array.of(value) };
}

/** A picture of the model's size: a colour, or the colour of each of its four parts. */
export async function picture(
  colours: readonly number[] | readonly (readonly number[])[],
  format: "png" | "webp" = "png",
): Promise<Buffer> {
  return await sharp(pixelsOf(colours), { raw: { width: SIDE, height: SIDE, channels: 3 } })
    .toFormat(format, { lossless: true })
    .toBuffer();
}

export type Colours = Parameters<typeof picture>[0];

function pixelsOf(colours: Colours): Uint8Array {
  const pixels = new Uint8Array(SIDE * SIDE * 3);
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const part = Math.floor(y / PART) * (SIDE / PART) + Math.floor(x / PART);
      const colour = typeof colours[0] === "number" ? colours : colours[part]!;
      pixels.set(colour as readonly number[], 3 * (y * SIDE + x));
    }
  }
  return pixels;
}

export function dataUrl(file: Uint8Array, type = "image/png"): string {
  return `data:${type};base64,${Buffer.from(file).toString("base64")}`;
}

/** A place of a prompt: a text, or the colours of an image. */
export type PromptPart = string | { readonly image: Colours };

/** A token with its log probability. */
export interface ReferenceToken {
  readonly token: string;
  readonly logprob: number;
}

/**
 * The oracle: the three graphs, run by hand for each token over the whole text, without keys and values of past tokens and
 * without any code of the library.
 */
export async function referenceTokens(
  directory: string,
  prompt: readonly PromptPart[],
  count: number,
): Promise<ReferenceToken[]> {
  const open = (name: string) =>
    InferenceSession.create(readFileSync(join(directory, "onnx", `${name}.onnx`)));
  const [vision, embed, decode] = await Promise.all(
    ["vision_encoder", "embed_tokens", "decoder_model_merged"].map(open),
  );
  const ids: number[] = [];
  const images: { readonly at: number; readonly features: Float32Array }[] = [];
  for (const part of prompt) {
    if (typeof part === "string") {
      ids.push(...encode(part));
      continue;
    }
    const pixels = pixelsOf(part.image);
    const area = SIDE * SIDE;
    const values = Float32Array.from(
      { length: 3 * area },
      (_, i) => (pixels[3 * (i % area) + Math.floor(i / area)]! / 255 - 0.5) / 0.5,
    );
    const given = { pixel_values: new Tensor("float32", values, [1, 3, SIDE, SIDE]) };
    const { image_features } = await vision!.run(given);
    images.push({ at: ids.length, features: image_features!.data as Float32Array });
    for (let i = 0; i < PARTS; i++) ids.push(idOf("<image>"));
  }
  const tokens: ReferenceToken[] = [];
  while (tokens.length < count) {
    const integers = (values: readonly number[]) =>
      new Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);
    const { inputs_embeds } = await embed!.run({ input_ids: integers(ids) });
    for (const { at, features } of images) (inputs_embeds!.data as Float32Array).set(features, at * SIZE);
    const { logits } = await decode!.run({
      inputs_embeds: inputs_embeds!,
      attention_mask: integers(ids.map(() => 1)),
      position_ids: integers(ids.map((_, i) => i)),
      "past_key_values.0.key": new Tensor("float32", [], [1, 1, 0, 1]),
      "past_key_values.0.value": new Tensor("float32", [], [1, 1, 0, CHANNELS]),
    });
    const scores = (logits!.data as Float32Array).slice(-VOCABULARY);
    const best = scores.indexOf(Math.max(...scores));
    const sum = scores.reduce((total, score) => total + Math.exp(score - scores[best]!), 0);
    if (best === idOf("<end>")) break;
    ids.push(best);
    tokens.push({ token: WORDS[best - FIRST_WORD]!, logprob: -Math.log(sum) });
  }
  return tokens;
}

/** Tokens of a text: words of the vocabulary where they are, and bytes. */
function encode(text: string): number[] {
  const escaped = WORDS.map((word) => word.replace(/[.]/g, "\\$&"));
  return text
    .split(new RegExp(`(${escaped.join("|")})`))
    .flatMap((piece) => (WORDS.includes(piece) ? [idOf(piece)] : [...Buffer.from(piece)]));
}
