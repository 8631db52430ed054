import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";

/** The root of the workspace. */
export const root = fileURLToPath(new URL("../../../../", import.meta.url));

const TOKENIZERS = join(root, "packages/llm/test/tokenizer/fixtures");

/** Writes files below a folder: texts, bytes, and objects as JSON. */
export function writeFiles(
  folder: string,
  files: Readonly<Record<string, string | Uint8Array | object>>,
): string {
  for (const [path, content] of Object.entries(files)) {
    const target = join(folder, path);
    mkdirSync(dirname(target), { recursive: true });
    const isRaw = typeof content === "string" || content instanceof Uint8Array;
    writeFileSync(target, isRaw ? content : JSON.stringify(content));
  }
  return folder;
}

const ids = (name: string) => ({ name, elemType: "INT64" as const, dims: ["rows", "tokens"] });

const WIDTH = 4;

/** The vector of a token: its number times 0.01, and each place once more by 1. */
export const vectorOf = (id: number): number[] =>
  Array.from({ length: WIDTH }, (_, i) => id * 0.01 + i - 1.5);

const table = Float32Array.from(
  { length: 2000 * WIDTH },
  (_, i) => vectorOf(Math.floor(i / WIDTH))[i % WIDTH]!,
);

/** A graph that looks up the vector of each token. */
export function encoderGraph(opset = 17): Uint8Array {
  return onnxModel({
    name: "encoder",
    opset,
    inputs: [ids("input_ids"), ids("attention_mask")],
    outputs: [{ name: "last_hidden_state", elemType: "FLOAT", dims: ["rows", "tokens", WIDTH] }],
    initializers: [{ name: "table", dims: [2000, WIDTH], data: table }],
    nodes: [{ op: "Gather", inputs: ["table", "input_ids"], outputs: ["last_hidden_state"] }],
  });
}

/** A graph whose scores are the first `count` numbers of the mean vector. */
export function classifierGraph(count: number, inputs = ["input_ids", "attention_mask"]): Uint8Array {
  return onnxModel({
    name: "classifier",
    opset: 17,
    inputs: inputs.map(ids),
    outputs: [{ name: "logits", elemType: "FLOAT", dims: ["rows", count] }],
    initializers: [
      { name: "table", dims: [2000, WIDTH], data: table },
      { name: "from", dims: [1], data: BigInt64Array.of(0n) },
      { name: "to", dims: [1], data: BigInt64Array.of(BigInt(count)) },
      { name: "axis", dims: [1], data: BigInt64Array.of(1n) },
    ],
    nodes: [
      { op: "Gather", inputs: ["table", "input_ids"], outputs: ["vectors"] },
      {
        op: "ReduceMean",
        inputs: ["vectors"],
        outputs: ["mean"],
        attributes: { axes: { ints: [1] }, keepdims: { int: 0 } },
      },
      { op: "Slice", inputs: ["mean", "from", "to", "axis"], outputs: ["logits"] },
    ],
  });
}

/** A graph that gives the mean of the three colours as scores. */
export function imageGraph(): Uint8Array {
  return onnxModel({
    name: "colours",
    opset: 17,
    inputs: [{ name: "pixel_values", elemType: "FLOAT", dims: ["rows", 3, 8, 8] }],
    outputs: [{ name: "logits", elemType: "FLOAT", dims: ["rows", 3] }],
    nodes: [
      {
        op: "ReduceMean",
        inputs: ["pixel_values"],
        outputs: ["logits"],
        attributes: { axes: { ints: [2, 3] }, keepdims: { int: 0 } },
      },
    ],
  });
}

/** A directory of Hugging Face with the tokenizer of BERT. */
export function bertDirectory(
  folder: string,
  config: object,
  files: Readonly<Record<string, string | Uint8Array | object>>,
): string {
  writeFiles(folder, { "config.json": config, ...files });
  copyFileSync(join(TOKENIZERS, "bert/tokenizer.json"), join(folder, "tokenizer.json"));
  return folder;
}
