import { errorFor, float16ToFloat32, type Tensor } from "@tritonjs/protocol";
import { ELEMENT } from "../onnx-graph/onnx-messages.js";
import type { OnnxModel } from "../onnx-graph/onnx-model.js";
import { type CalibrationMethod, ValueHistogram, type ValueRange } from "../onnx-graph/quantization.js";
import { valueTypes } from "../onnx-graph/value-types.js";
import { ModelRunner, type Sample } from "./model-runner.js";

/** Options of {@link calibrate}. */
export interface CalibrationOptions {
  /** How a range is chosen: all values, those with the least loss of information, or a share. @default "min-max" */
  readonly method?: CalibrationMethod;
  /** Share of the values that the method `percentile` keeps. @default 99.99 */
  readonly percentile?: number;
  readonly signal?: AbortSignal;
}

/** Opens a model so that values inside of it are outputs too. */
export async function openWithValues(model: OnnxModel, names: readonly string[]): Promise<ModelRunner> {
  const watched = model.commit();
  const { graph } = watched.message;
  const known = new Set([...graph.output, ...graph.input].map(({ name }) => name));
  const types = valueTypes(graph);
  for (const name of names) {
    const elemType = types.get(name) ?? ELEMENT.FLOAT;
    if (!known.has(name)) graph.output.push({ name, type: { tensorType: { elemType } } });
  }
  return ModelRunner.open(watched, { graphOptimizationLevel: "disabled" });
}

/**
 * Finds the ranges of values inside a model on samples. A value that is empty in all samples, such as the keys of no
 * earlier tokens, gets no range: other shapes would fill it with numbers that no range was made for.
 *
 * @param names of FLOAT values
 * @throws TritonError INVALID_ARG without samples, for samples that the model refuses, and for those that leave all
 * values empty
 */
export async function calibrate(
  model: OnnxModel,
  names: readonly string[],
  samples: readonly Sample[],
  { method = "min-max", percentile = 99.99, signal }: CalibrationOptions = {},
): Promise<Map<string, ValueRange>> {
  if (samples.length === 0) {
    const text = `calibration of the ONNX model ${model.label}: expected at least one sample, got none`;
    throw errorFor("INVALID_INPUT", text);
  }
  const inputs = new Set(model.message.graph.input.map(({ name }) => name));
  const runner = await openWithValues(model, names);
  const histograms = new Map(names.map((name) => [name, new ValueHistogram()]));
  try {
    const computed = names.filter((name) => !inputs.has(name));
    for (const sample of samples) {
      signal?.throwIfAborted();
      const results = await runner.run(sample, computed);
      for (const [name, histogram] of histograms) {
        const tensor = results.get(name) ?? sample.get(name);
        const values = tensor && floatsOf(tensor);
        if (values) histogram.add(values);
      }
    }
  } finally {
    await runner.close();
  }
  const filled = [...histograms].filter(([, histogram]) => !histogram.isEmpty);
  if (filled.length === 0) {
    const text =
      `calibration of the ONNX model ${model.label}: expected samples with numbers in the layers, got ${samples.length} ` +
      `that leave '${names[0]}' and all others empty: give samples of the shapes that are served`;
    throw errorFor("INVALID_INPUT", text);
  }
  return new Map(filled.map(([name, histogram]) => [name, histogram.range(method, percentile)]));
}

/** The elements of a tensor of real numbers; undefined for another type. */
export function floatsOf({ datatype, elements }: Tensor): ArrayLike<number> | undefined {
  if (datatype === "FP32" || datatype === "FP64") return elements as Float32Array;
  return datatype === "FP16" ? float16ToFloat32(elements as Uint16Array) : undefined;
}
