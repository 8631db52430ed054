import { OpenModels } from "./open-models.js";
import { type Picture, readPicture } from "./pictures.js";

/** Program 7: where text is in a picture, with EAST's tensors. */
export async function textDetection(): Promise<void> {
  await using models = await OpenModels.serve(["text_detection"]);
  const served = (await (await fetch(`${models.url}/v2/models/text_detection/config`)).json()) as {
    max_batch_size: number;
    input: { name: string; dims: number[] }[];
    output: { name: string; dims: number[] }[];
  };
  console.log(`max_batch_size ${served.max_batch_size}`);
  for (const { name, dims } of [...served.input, ...served.output]) console.log(`${name} [${dims}]`);

  const picture = await readPicture("text");
  const answer = await models.client.infer("text_detection", {
    inputs: {
      "input_images:0": {
        datatype: "FP32",
        shape: [1, 1, picture.height, picture.width, 3],
        data: withoutMeans(picture),
      },
    },
  });
  const scores = answer.array("feature_fusion/Conv_7/Sigmoid:0", "FP32");
  const [, , rows, columns] = scores.shape;
  const boxes = boxesOf(scores.data, answer.elements("feature_fusion/concat_3:0", "FP32"), rows!, columns!);
  for (const { left, top, right, bottom } of boxes) {
    console.log(
      `text from (${Math.round(left)}, ${Math.round(top)}) to (${Math.round(right)}, ${Math.round(bottom)})`,
    );
  }
}

/** The means of the red, green and blue of photographs, as EAST subtracts them. */
const MEANS = [123.68, 116.78, 103.94];

function withoutMeans({ values }: Picture): Float32Array {
  return Float32Array.from(values, (value, i) => value - MEANS[i % 3]!);
}

interface Box {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly score: number;
}

/** Pixels of a cell of the maps. */
const CELL = 4;
const LEAST_SCORE = 0.8;
const MOST_OVERLAP = 0.2;

/**
 * Boxes of EAST's maps: a cell with text has the distances to the top, right, bottom and left of its box. Of boxes that
 * overlap, the one with the best score stays, as the mean of the others that are almost the same. Text here is
 * horizontal, so the angles are not used.
 */
export function boxesOf(scores: Float32Array, geometry: Float32Array, rows: number, columns: number): Box[] {
  const found: Box[] = [];
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const cell = row * columns + column;
      const score = scores[cell]!;
      if (score < LEAST_SCORE) continue;
      const [top, right, bottom, left] = geometry.subarray(5 * cell, 5 * cell + 4);
      const [x, y] = [CELL * column, CELL * row];
      found.push({ left: x - left!, top: y - top!, right: x + right!, bottom: y + bottom!, score });
    }
  }
  found.sort((a, b) => b.score - a.score);
  const kept: Box[][] = [];
  for (const box of found) {
    const same = kept.find(([best]) => overlap(best!, box) > MOST_OVERLAP);
    if (same === undefined) kept.push([box]);
    else if (overlap(same[0]!, box) > 0.6) same.push(box);
  }
  return kept.map(meanBox).sort((a, b) => a.top - b.top);
}

function overlap(a: Box, b: Box): number {
  const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const area = ({ left, top, right, bottom }: Box) => (right - left) * (bottom - top);
  return (width * height) / (area(a) + area(b) - width * height);
}

function meanBox(boxes: readonly Box[]): Box {
  const mean = (side: keyof Box) => boxes.reduce((sum, box) => sum + box[side], 0) / boxes.length;
  return {
    left: mean("left"),
    top: mean("top"),
    right: mean("right"),
    bottom: mean("bottom"),
    score: boxes[0]!.score,
  };
}
