import { type OnnxTensor, onnxModel } from "@tritonjs-examples/onnx-writer";
import { irisMeasurements, irisSpecies, parseIris } from "./iris-data.js";
import { dot, type Matrix, transpose } from "./matrix.js";
import { trainClassifier } from "./train-classifier.js";

const HIDDEN_UNITS = 8;
/** Weights are rounded to 1 / 10 000, which is far finer than the precision of the data. */
const STEPS_PER_UNIT = 10_000;

/**
 * Trains the iris classifier and returns it as an ONNX model:
 *
 * - input `measurements`: FP32 `[batch, 4]`, sepal length, sepal width, petal length, petal width in centimetres
 * - output `probabilities`: FP32 `[batch, 3]`, setosa, versicolor, virginica
 * - output `species`: INT64 `[batch, 1]`, index of the most probable species
 *
 * The same data gives the same bytes.
 *
 * @param csvText - text of `iris.csv`
 * @throws Error with the line number, if the text cannot be read.
 */
export function trainIris(csvText: string): Uint8Array {
  const flowers = parseIris(csvText);
  const measurements = flowers.map((flower) => flower.measurements);
  const scales = transpose(measurements).map(scaleOf);
  const classifier = trainClassifier(
    {
      features: measurements.map((row) =>
        row.map((value, i) => (value - scales[i]!.mean) / scales[i]!.deviation),
      ),
      classes: flowers.map((flower) => flower.species),
    },
    {
      classCount: irisSpecies.length,
      hiddenUnits: HIDDEN_UNITS,
      epochs: 500,
      learningRate: 0.1,
      momentum: 0.9,
      weightDecay: 1e-3,
      seed: 1936, // the year of Fisher's paper
    },
  );
  return onnxModel({
    name: "iris",
    opset: 17,
    inputs: [{ name: "measurements", elemType: "FLOAT", dims: ["batch", irisMeasurements.length] }],
    outputs: [
      { name: "probabilities", elemType: "FLOAT", dims: ["batch", irisSpecies.length] },
      { name: "species", elemType: "INT64", dims: ["batch", 1] },
    ],
    initializers: [
      ...layerTensors("hidden", takeRawInputs(classifier.hidden, scales)),
      ...layerTensors("output", classifier.output),
    ],
    nodes: [
      { op: "Gemm", inputs: ["measurements", "hidden.weights", "hidden.bias"], outputs: ["hidden.sums"] },
      { op: "Tanh", inputs: ["hidden.sums"], outputs: ["hidden.activations"] },
      { op: "Gemm", inputs: ["hidden.activations", "output.weights", "output.bias"], outputs: ["logits"] },
      { op: "Softmax", inputs: ["logits"], outputs: ["probabilities"], attributes: { axis: { int: 1 } } },
      {
        op: "ArgMax",
        inputs: ["probabilities"],
        outputs: ["species"],
        attributes: { axis: { int: 1 }, keepdims: { int: 1 } },
      },
    ],
  });
}

interface Scale {
  readonly mean: number;
  readonly deviation: number;
}

/** Mean and standard deviation. Math.sqrt is safe here: it is the correctly rounded IEEE 754 operation. */
function scaleOf(values: readonly number[]): Scale {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) * (value - mean), 0) / values.length;
  return { mean, deviation: Math.sqrt(variance) };
}

/** Moves the standardisation of the inputs, (x - mean) / deviation, into the layer that reads them. */
function takeRawInputs(layer: Matrix, scales: readonly Scale[]): Matrix {
  const weights = layer.slice(0, -1).map((row, i) => row.map((weight) => weight / scales[i]!.deviation));
  const means = scales.map((scale) => scale.mean);
  const shifts = transpose(weights).map((column) => dot(column, means));
  return [...weights, layer.at(-1)!.map((bias, unit) => bias - shifts[unit]!)];
}

function layerTensors(name: string, layer: Matrix): OnnxTensor[] {
  const weights = layer.slice(0, -1);
  const bias = layer.at(-1)!;
  return [
    { name: `${name}.weights`, dims: [weights.length, bias.length], data: rounded(weights.flat()) },
    { name: `${name}.bias`, dims: [bias.length], data: rounded(bias) },
  ];
}

function rounded(values: readonly number[]): Float32Array {
  return Float32Array.from(values, (value) => Math.round(value * STEPS_PER_UNIT) / STEPS_PER_UNIT);
}
