import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { batch, type Triton, TritonError } from "@tritonjs/core";

const model = new URL("../../quickstart/iris/iris.onnx", import.meta.url);
const SPECIES = ["setosa", "versicolor", "virginica"];

/**
 * Binds three models and the ensemble `iris-pipeline` that joins them:
 *
 * ```
 * line (text) --> [parse] --> measurements --> [iris: ONNX] --> probabilities --> [name] --> species, confidence
 * ```
 *
 * Each model has its own queue and batches. Requests of the pipeline share batches with direct requests of a member.
 */
export function bindIrisPipeline(triton: Triton) {
  triton.bind({
    modelName: "parse",
    inputs: [{ name: "line", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "measurements", dtype: "FP32", shape: [4] }],
    // The function takes a list of requests, so that an unreadable line fails only its own request.
    inferFunc: (requests) =>
      requests.map(({ inputs }) => {
        try {
          return {
            measurements: inputs.line.strings().map(measurements),
          };
        } catch (error) {
          return TritonError.from(error);
        }
      }),
    config: { maxBatchSize: 64 },
  });
  triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model }), config: { maxBatchSize: 64 } });
  triton.bind({
    modelName: "name",
    inputs: [{ name: "probabilities", dtype: "FP32", shape: [3] }],
    outputs: [
      { name: "species", dtype: "BYTES", shape: [1] },
      { name: "confidence", dtype: "FP32", shape: [1] },
    ],
    inferFunc: batch(({ probabilities }) => {
      const rows = Array.from({ length: probabilities.shape[0]! }, (_, row) => {
        const values = SPECIES.map((_, column) => probabilities.get(row, column));
        const confidence = Math.max(...values);
        return { species: SPECIES[values.indexOf(confidence)]!, confidence };
      });
      return {
        species: rows.map(({ species }) => [species]),
        confidence: rows.map(({ confidence }) => [confidence]),
      };
    }),
    config: { maxBatchSize: 64 },
  });
  return triton.bindEnsemble({
    modelName: "iris-pipeline",
    inputs: [{ name: "line", dtype: "BYTES", shape: [1] }],
    outputs: [
      { name: "species", dtype: "BYTES", shape: [1] },
      { name: "confidence", dtype: "FP32", shape: [1] },
    ],
    steps: [
      { modelName: "parse", inputMap: { line: "line" }, outputMap: { measurements: "measurements" } },
      {
        modelName: "iris",
        inputMap: { measurements: "measurements" },
        outputMap: { probabilities: "probabilities" },
      },
      {
        modelName: "name",
        inputMap: { probabilities: "probabilities" },
        outputMap: { species: "species", confidence: "confidence" },
      },
    ],
    config: { maxBatchSize: 64 },
  });
}

function measurements(line: string): number[] {
  const values = line.split(",").map(Number);
  if (values.length === 4 && values.every(Number.isFinite)) return values;
  throw new TritonError("INVALID_ARG", `a line has four numbers between commas, got '${line}'`);
}
