import { image } from "@tritonjs/backends/media";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import type { Triton } from "@tritonjs/core";
import { CLASSES, makeClassifier, makeSegmenter } from "./make-models.js";

/** Width and height in pixels of the picture that the models get. */
export const SIZE = 16;

/**
 * Binds three models and the ensemble `picture` that joins them. The classifier and the segmenter read the same
 * pixels and run at the same time, each in a thread of its own:
 *
 * ```
 *                                         +--> [classifier: ONNX] --> probabilities
 * image (JPEG) -> [decode] --> pixels ----|
 *                                         +--> [segmenter: ONNX] ---> mask
 * ```
 */
export function bindPicture(triton: Triton) {
  const config = { maxBatchSize: 8 };
  triton.bind({
    modelName: "decode",
    inferFunc: image({ width: SIZE, height: SIZE, fit: "fill" }),
    config,
  });
  triton.bind({
    modelName: "classifier",
    inferFunc: onnxruntime({ model: makeClassifier() }),
    outputs: [{ name: "probabilities", dtype: "FP32", shape: [CLASSES.length], labels: CLASSES }],
    inputs: [{ name: "pixels", dtype: "FP32", shape: [3, SIZE, SIZE] }],
    config,
  });
  triton.bind({
    modelName: "segmenter",
    inferFunc: onnxruntime({ model: makeSegmenter() }),
    outputs: [{ name: "mask", dtype: "INT64", shape: [SIZE, SIZE] }],
    inputs: [{ name: "pixels", dtype: "FP32", shape: [3, SIZE, SIZE] }],
    config,
  });
  return triton.bindEnsemble({
    modelName: "picture",
    inputs: [{ name: "image", dtype: "BYTES", shape: [1] }],
    outputs: [
      { name: "probabilities", dtype: "FP32", shape: [CLASSES.length] },
      { name: "mask", dtype: "INT64", shape: [SIZE, SIZE] },
    ],
    steps: [
      { modelName: "decode", inputMap: { image: "image" }, outputMap: { pixels: "pixels" } },
      {
        modelName: "classifier",
        inputMap: { pixels: "pixels" },
        outputMap: { probabilities: "probabilities" },
      },
      { modelName: "segmenter", inputMap: { pixels: "pixels" }, outputMap: { mask: "mask" } },
    ],
    config,
  });
}
