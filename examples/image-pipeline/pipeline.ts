import { type Triton, TritonError } from "@tritonjs/core";
import { onnxruntime } from "@tritonjs/core/onnxruntime";
import { CLASSES, makeClassifier, makeSegmenter } from "./make-models.js";
import { readPpm, toPlanes } from "./ppm.js";

/** Width and height in pixels of the picture that the models get. */
export const SIZE = 16;

/**
 * Binds three models and the ensemble `picture` that joins them. The classifier and the segmenter read the same
 * pixels and run at the same time, each in a thread of its own:
 *
 * ```
 *                                         +--> [classifier: ONNX] --> probabilities
 * image (PPM) --> [decode] --> pixels ----|
 *                                         +--> [segmenter: ONNX] ---> mask
 * ```
 */
export function bindPicture(triton: Triton) {
  const config = { maxBatchSize: 8 };
  triton.bind({
    modelName: "decode",
    inputs: [{ name: "image", dtype: "BYTES", shape: [1] }],
    outputs: [{ name: "pixels", dtype: "FP32", shape: [3, SIZE, SIZE] }],
    inferFunc: (requests) =>
      requests.map(({ inputs: { image } }) => {
        const pixels = new Float32Array(image.data.length * 3 * SIZE * SIZE);
        try {
          for (const [i, bytes] of image.data.entries()) {
            pixels.set(toPlanes(readPpm(bytes), SIZE), i * 3 * SIZE * SIZE);
          }
        } catch (error) {
          return new TritonError("INVALID_ARG", (error as Error).message);
        }
        return { pixels };
      }),
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
