import { image } from "@tritonjs/backends/media";
import { tensorflow } from "@tritonjs/backends/tensorflow";
import { sample, type Triton } from "@tritonjs/core";
import { findThings } from "./find-things.js";
import { detector } from "./photographs.js";

/** Width and height in pixels of the picture that the network gets. */
const SIZE = 512;

/** Names of the network's tensors, as its file has them. */
const IMAGES = "tower_0/images";
const DETECTIONS = "tower_0/detections";

const things = { name: "things", dtype: "BYTES", shape: [-1] } as const;
const scores = { name: "scores", dtype: "FP32", shape: [-1] } as const;

/**
 * Binds the ensemble `things-in-photograph`. sharp decodes on libuv's threads. Two instances of the network, each in a
 * thread of its own, look at two photographs at a time:
 *
 * ```
 * photograph (JPEG) --> [pixels: sharp] --> [detect: TensorFlow.js, 2 instances] --> [choose] --> things, scores
 * ```
 */
export function bindDetector(triton: Triton) {
  const config = { batching: false } as const;
  triton.bind({
    modelName: "pixels",
    // The network takes the values of the pixels as they are.
    inferFunc: image({ width: SIZE, height: SIZE, fit: "fill", layout: "NHWC", scale: 1 }),
    config,
  });
  const network = triton.bind({
    modelName: "detect",
    inferFunc: tensorflow({ model: detector }),
    config: { ...config, instanceGroup: { count: 2 } },
  });
  triton.bind({
    modelName: "choose",
    inputs: [{ name: "detections", dtype: "FP32", shape: [1, -1, 6] }],
    outputs: [things, scores],
    inferFunc: sample(({ detections }) => {
      const found = findThings(detections.data);
      return {
        things: found.map(({ kind }) => kind),
        scores: Float32Array.from(found, ({ score }) => score),
      };
    }),
    config,
  });
  const ensemble = triton.bindEnsemble({
    modelName: "things-in-photograph",
    inputs: [{ name: "photograph", dtype: "BYTES", shape: [1, 1] }],
    outputs: [things, scores],
    steps: [
      { modelName: "pixels", inputMap: { image: "photograph" }, outputMap: { pixels: "pixels" } },
      { modelName: "detect", inputMap: { [IMAGES]: "pixels" }, outputMap: { [DETECTIONS]: "detections" } },
      {
        modelName: "choose",
        inputMap: { detections: "detections" },
        outputMap: { things: "things", scores: "scores" },
      },
    ],
    // The same photograph again is answered from the cache.
    config: { ...config, responseCache: true },
  });
  return { ensemble, network };
}
