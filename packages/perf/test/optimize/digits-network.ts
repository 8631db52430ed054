import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";

/** The pictures of the tutorial on learning, a module without declarations. */
interface DigitPictures {
  readonly PIXELS: number;
  randomNumbers(seed: number): () => number;
  drawDigits(count: number, random: () => number): { images: Float32Array; targets: Int32Array };
}

const pictures = new URL("../../../../examples/tutorials/online-learning/digits.mjs", import.meta.url);
const { drawDigits, PIXELS, randomNumbers } = (await import(pictures.href)) as DigitPictures;

/** Value of a planted input channel that only carries the bias. */
const OUTLIER = 1000;

const HIDDEN = 512;

interface Digits {
  /** Path of the ONNX file. */
  readonly model: string;
  /** Paths of the test pictures and their digits. */
  readonly inputData: string;
  readonly labels: string;
}

/**
 * Writes a network that reads digits: a random hidden layer, and a layer that is trained on its values.
 *
 * @param hasOutlier the input has one more channel, of 1000 in each picture: one scale for all channels then hides the
 * pixels
 */
export function writeDigits(folder: string, hasOutlier: boolean): Digits {
  const random = randomNumbers(11);
  const width = PIXELS + (hasOutlier ? 1 : 0);
  const hidden = Float32Array.from({ length: width * HIDDEN }, () => (random() - 0.5) * 0.6);
  if (hasOutlier) {
    for (let i = 0; i < HIDDEN; i++) hidden[PIXELS * HIDDEN + i] = ((random() - 0.5) * 0.2) / OUTLIER;
  }
  const rowsOf = (images: Float32Array, count: number) =>
    Array.from({ length: count }, (_, row) => [
      ...images.subarray(row * PIXELS, (row + 1) * PIXELS),
      ...(hasOutlier ? [OUTLIER] : []),
    ]);
  const train = drawDigits(1500, random);
  const features = rowsOf(train.images, 1500).map((row) => featuresOf(row, hidden));
  const head = trained(features, train.targets);
  const value = (name: string, ...dims: (number | string)[]) => ({ name, elemType: "FLOAT" as const, dims });
  const bytes = onnxModel({
    name: "digits",
    opset: 17,
    inputs: [value("pixels", "rows", width)],
    outputs: [value("scores", "rows", 10)],
    initializers: [
      { name: "hidden.weight", dims: [width, HIDDEN], data: hidden },
      { name: "head.weight", dims: [HIDDEN, 10], data: head },
    ],
    nodes: [
      { op: "MatMul", name: "hidden", inputs: ["pixels", "hidden.weight"], outputs: ["sums"] },
      { op: "Relu", name: "relu", inputs: ["sums"], outputs: ["features"] },
      { op: "MatMul", name: "head", inputs: ["features", "head.weight"], outputs: ["scores"] },
    ],
  });
  const test = drawDigits(400, random);
  mkdirSync(folder, { recursive: true });
  const paths = {
    model: join(folder, "digits.onnx"),
    inputData: join(folder, "digits.json"),
    labels: join(folder, "labels.txt"),
  };
  writeFileSync(paths.model, bytes);
  writeFileSync(
    paths.inputData,
    JSON.stringify({ data: rowsOf(test.images, 400).map((pixels) => ({ pixels })) }),
  );
  writeFileSync(paths.labels, `${[...test.targets].join("\n")}\n`);
  return paths;
}

function featuresOf(row: readonly number[], hidden: Float32Array): Float32Array {
  const sums = new Float32Array(HIDDEN);
  for (const [i, value] of row.entries()) {
    for (let j = 0; j < HIDDEN; j++) sums[j] = sums[j]! + value * hidden[i * HIDDEN + j]!;
  }
  return sums.map((sum) => Math.max(0, sum));
}

/** Trains the last layer by gradient descent on the cross entropy. */
function trained(features: readonly Float32Array[], targets: Int32Array): Float32Array {
  const head = new Float32Array(HIDDEN * 10);
  for (let epoch = 0; epoch < 12; epoch++) {
    for (const [row, values] of features.entries()) {
      const scores = new Float64Array(10);
      for (let i = 0; i < HIDDEN; i++) {
        if (values[i] === 0) continue;
        for (let digit = 0; digit < 10; digit++)
          scores[digit] = scores[digit]! + values[i]! * head[i * 10 + digit]!;
      }
      const most = Math.max(...scores);
      const powers = scores.map((score) => Math.exp(score - most));
      const sum = powers.reduce((a, b) => a + b, 0);
      for (let i = 0; i < HIDDEN; i++) {
        if (values[i] === 0) continue;
        for (let digit = 0; digit < 10; digit++) {
          const slope = powers[digit]! / sum - (targets[row] === digit ? 1 : 0);
          head[i * 10 + digit] = head[i * 10 + digit]! - 0.01 * values[i]! * slope;
        }
      }
    }
  }
  return head;
}
