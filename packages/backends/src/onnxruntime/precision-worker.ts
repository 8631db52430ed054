/* The thread that rewrites a model: the weights of a large one take seconds, in which the event loop must answer. */
import { parentPort, workerData } from "node:worker_threads";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { cleanUp, shortenNames } from "../onnx-graph/clean-up.js";
import { quantizeDynamically } from "../onnx-graph/dynamic-int8.js";
import { convertToHalf } from "../onnx-graph/half-precision.js";
import { OnnxModel } from "../onnx-graph/onnx-model.js";
import { raiseOpset } from "../onnx-graph/raise-opset.js";
import type { PrecisionAnswer, PrecisionTask } from "./precision-form.js";

const { model: path, file, precision } = workerData as PrecisionTask;

try {
  const model = await OnnxModel.read(path);
  cleanUp(model);
  raiseOpset(model);
  const { layers } = precision === "INT8" ? quantizeDynamically(model) : convertToHalf(model);
  if (layers.length === 0) {
    const text = `precision_mode ${precision} of the ONNX model '${path}': expected layers that have such a form, got none`;
    throw errorFor("INVALID_CONFIG", text);
  }
  shortenNames(model);
  await model.write(file);
} catch (error) {
  const { code, message } = TritonError.from(error);
  parentPort!.postMessage({ code, message } satisfies PrecisionAnswer);
}
