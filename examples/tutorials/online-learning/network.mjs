import { PIXELS } from "./digits.mjs";

/* A network of two layers in plain arrays: PIXELS -> HIDDEN (tanh) -> 10 (softmax). */

const HIDDEN = 32;
const CLASSES = 10;

/** Number of weights: both matrices, each with a column for the bias. */
const SIZE = HIDDEN * (PIXELS + 1) + CLASSES * (HIDDEN + 1);

/** Weights before any training. */
export function freshWeights(random) {
  return Float32Array.from({ length: SIZE }, () => (random() - 0.5) * 0.2);
}

function layersOf(weights) {
  const end = HIDDEN * (PIXELS + 1);
  return [weights.subarray(0, end), weights.subarray(end)];
}

/** Multiplies a vector by a matrix whose rows end in a bias. */
function affine(matrix, input, output) {
  const width = input.length + 1;
  for (let row = 0; row < output.length; row++) {
    let sum = matrix[row * width + input.length];
    for (let i = 0; i < input.length; i++) sum += matrix[row * width + i] * input[i];
    output[row] = sum;
  }
}

function forward([first, second], image, hidden, scores) {
  affine(first, image, hidden);
  for (let i = 0; i < HIDDEN; i++) hidden[i] = Math.tanh(hidden[i]);
  affine(second, hidden, scores);
  const most = Math.max(...scores);
  let sum = 0;
  for (let i = 0; i < CLASSES; i++) sum += scores[i] = Math.exp(scores[i] - most);
  for (let i = 0; i < CLASSES; i++) scores[i] /= sum;
}

/** Scores of the ten digits for each picture. */
export function classify(weights, images) {
  const layers = layersOf(weights);
  const hidden = new Float32Array(HIDDEN);
  const scores = new Float32Array((images.length / PIXELS) * CLASSES);
  for (let row = 0; row * PIXELS < images.length; row++) {
    const image = images.subarray(row * PIXELS, (row + 1) * PIXELS);
    forward(layers, image, hidden, scores.subarray(row * CLASSES, (row + 1) * CLASSES));
  }
  return scores;
}

/** Changes the weights by one step of gradient descent. @returns the loss of each picture before the step */
export function train(weights, images, targets, rate) {
  const [first, second] = layersOf(weights);
  const rows = targets.length;
  const gradient = new Float32Array(SIZE);
  const [ofFirst, ofSecond] = layersOf(gradient);
  const hidden = new Float32Array(HIDDEN);
  const scores = new Float32Array(CLASSES);
  const losses = new Float32Array(rows);
  for (let row = 0; row < rows; row++) {
    const image = images.subarray(row * PIXELS, (row + 1) * PIXELS);
    forward([first, second], image, hidden, scores);
    losses[row] = -Math.log(Math.max(scores[targets[row]], 1e-7));
    scores[targets[row]] -= 1;
    const back = new Float32Array(HIDDEN);
    for (let c = 0; c < CLASSES; c++) {
      const at = c * (HIDDEN + 1);
      for (let i = 0; i < HIDDEN; i++) {
        ofSecond[at + i] += scores[c] * hidden[i];
        back[i] += scores[c] * second[at + i];
      }
      ofSecond[at + HIDDEN] += scores[c];
    }
    for (let h = 0; h < HIDDEN; h++) {
      const slope = back[h] * (1 - hidden[h] ** 2);
      const at = h * (PIXELS + 1);
      for (let i = 0; i < PIXELS; i++) ofFirst[at + i] += slope * image[i];
      ofFirst[at + PIXELS] += slope;
    }
  }
  for (let i = 0; i < SIZE; i++) weights[i] -= (rate / rows) * gradient[i];
  return losses;
}
