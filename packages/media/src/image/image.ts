import type { Backend } from "@tritonjs/core/backend";
import type { TensorSpec } from "@tritonjs/protocol";
import { hasRows } from "../parameters/bytes-input.js";
import { completeTensors } from "../parameters/complete-tensors.js";
import { ImageExecutor, ORIGINAL_SIZE } from "./image-executor.js";
import type { ImageOptions } from "./image-options.js";
import { type ImagePlan, planImage } from "./image-plan.js";

/**
 * A backend that prepares images for a model: it decodes JPEG, PNG, WebP, GIF, TIFF and AVIF, turns the image upright
 * (EXIF), resizes, crops, normalizes, and lays out a tensor. `bind` needs no specifications: the input is `image`
 * (BYTES `[rows, 1]`, the bytes of a file), the output is `pixels` (`[rows, 3, height, width]`).
 *
 * The images of a batch are decoded at the same time by `sharp`, on libuv's threads. A bad file fails its own request
 * with INVALID_ARG.
 *
 * @throws TritonError INVALID_ARG for invalid options. Loading fails with UNAVAILABLE unless `sharp` is installed.
 * @example
 * ```ts
 * triton.bind({
 *   modelName: "pixels",
 *   inferFunc: image({
 *     width: 224,
 *     height: 224,
 *     shorterSide: 256,
 *     mean: [0.485, 0.456, 0.406],
 *     std: [0.229, 0.224, 0.225],
 *   }),
 * });
 * ```
 */
export function image(options: ImageOptions): Backend {
  return imageBackend(planImage(options));
}

/** The backend of a plan. */
export function imageBackend(plan: ImagePlan): Backend {
  const { inputs, outputs } = tensorsOf(plan);
  const withRows = (spec: TensorSpec): TensorSpec => ({ ...spec, shape: [-1, ...spec.shape] });
  return {
    backendName: "image",
    platform: "",
    isolations: ["inline"],
    describe: () => ({ inputs: inputs.map(withRows), outputs: outputs.map(withRows) }),
    completeConfig: (config) => completeTensors(config, inputs, outputs),
    createExecutor: ({ info }) => new ImageExecutor(plan, hasRows(info.modelConfig, plan.inputName)),
  };
}

/** The tensors of a plan, without the axis of the rows. */
function tensorsOf(plan: ImagePlan) {
  const { width, height, channels, layout, dtype, inputName, outputName } = plan;
  const shape = layout === "NCHW" ? [channels, height, width] : [height, width, channels];
  const inputs: readonly TensorSpec[] = [{ name: inputName, dtype: "BYTES", shape: [1] }];
  const outputs: TensorSpec[] = [{ name: outputName, dtype, shape }];
  if (plan.originalSize) outputs.push({ name: ORIGINAL_SIZE, dtype: "INT32", shape: [2] });
  return { inputs, outputs };
}
