import { exp, tanh } from "./exact-math.js";
import { combine, type Matrix, multiply, transpose } from "./matrix.js";
import { seededRandom } from "./seeded-random.js";

/** Training data: `features[i]` belongs to class `classes[i]`. */
export interface TrainingSet {
  /** Shape `[samples, features]`; each feature with mean 0 and standard deviation 1. */
  readonly features: Matrix;
  /** Class numbers, from 0. */
  readonly classes: readonly number[];
}

/** Training options. */
export interface TrainingOptions {
  readonly classCount: number;
  readonly hiddenUnits: number;
  /** Number of passes over the whole training set. */
  readonly epochs: number;
  readonly learningRate: number;
  /** Momentum: share of the last step that is added to the next, from 0 to 1. */
  readonly momentum: number;
  /** Weight decay: larger values make the probabilities less extreme. */
  readonly weightDecay: number;
  readonly seed: number;
}

/**
 * A network with one hidden layer: `softmax(tanh(x * hidden) * output)`, where a 1 is appended to the input of each
 * layer, so that the last row of a layer is its bias.
 */
export interface Classifier {
  /** Shape `[features + 1, hiddenUnits]`. */
  readonly hidden: Matrix;
  /** Shape `[hiddenUnits + 1, classCount]`. */
  readonly output: Matrix;
}

/**
 * Trains a classifier by gradient descent with momentum over the whole training set. The same training set and
 * options give the same weights to the last bit.
 */
export function trainClassifier(set: TrainingSet, options: TrainingOptions): Classifier {
  const { classCount, hiddenUnits, epochs, learningRate, momentum, weightDecay } = options;
  const random = seededRandom(options.seed);
  const features = withOnes(set.features);
  const targets = set.classes.map((wanted) =>
    Array.from({ length: classCount }, (_, index) => (index === wanted ? 1 : 0)),
  );
  let hidden = randomLayer(features[0]!.length, hiddenUnits, random);
  let output = randomLayer(hiddenUnits + 1, classCount, random);
  let hiddenStep = combine(hidden, hidden, () => 0);
  let outputStep = combine(output, output, () => 0);

  for (let epoch = 0; epoch < epochs; epoch++) {
    const activations = multiply(features, hidden).map((row) => row.map(tanh));
    const probabilities = multiply(withOnes(activations), output).map(softmax);

    const outputError = combine(probabilities, targets, (got, wanted) => (got - wanted) / targets.length);
    const passedBack = multiply(outputError, transpose(output.slice(0, -1)));
    const hiddenError = combine(passedBack, activations, (error, value) => error * (1 - value * value));
    const outputGradient = multiply(transpose(withOnes(activations)), outputError);
    const hiddenGradient = multiply(transpose(features), hiddenError);

    outputStep = nextStep(outputStep, outputGradient, output);
    hiddenStep = nextStep(hiddenStep, hiddenGradient, hidden);
    output = combine(output, outputStep, (weight, step) => weight + step);
    hidden = combine(hidden, hiddenStep, (weight, step) => weight + step);
  }
  return { hidden, output };

  function nextStep(last: Matrix, gradient: Matrix, weights: Matrix): Matrix {
    const slope = combine(gradient, weights, (down, weight) => down + weightDecay * weight);
    return combine(last, slope, (step, down) => momentum * step - learningRate * down);
  }
}

function randomLayer(inputs: number, outputs: number, random: () => number): Matrix {
  return Array.from({ length: inputs }, () => Array.from({ length: outputs }, () => random() - 0.5));
}

function withOnes(matrix: Matrix): Matrix {
  return matrix.map((row) => [...row, 1]);
}

function softmax(logits: readonly number[]): number[] {
  const largest = Math.max(...logits);
  const powers = logits.map((logit) => exp(logit - largest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
