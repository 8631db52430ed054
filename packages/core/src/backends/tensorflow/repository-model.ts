import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type Isolation, TritonError } from "@tritonjs/protocol";

import type { BackendFactory, ModelSource } from "../../instance/backend.js";
import { hostingOf } from "../hosting-parameters.js";
import { findModelFile, notFound } from "../model-file.js";
import { describeModel } from "./describe-model.js";
import { isNative, TENSORFLOW_RUNTIMES } from "./find-runtime.js";
import { modelData, tensorflowIn } from "./index.js";
import type { TensorflowOptions, TensorflowRuntime } from "./options.js";

const ISOLATIONS: readonly Isolation[] = ["worker", "process"];

/**
 * The backend `tensorflow` for models of a repository: `<version>/model.json` of TensorFlow.js, or the directory
 * `<version>/model.savedmodel`, which contains a SavedModel or a `model.json`. The parameters of the configuration are
 * Triton's `TF_SIGNATURE_DEF`, and `runtime`.
 */
export const tensorflowBackend: BackendFactory = async (source) => {
  const { name, directory, config } = source;
  if (config.platform === "tensorflow_graphdef") {
    throw new TritonError(
      "UNSUPPORTED",
      `model '${name}' is a frozen graph (tensorflow_graphdef), which TensorFlow.js cannot read: convert it with ` +
        "tensorflowjs_converter --input_format=tf_frozen_model to model.json, or with tf2onnx to model.onnx",
      { reason: "MODEL_NOT_SUPPORTED" },
    );
  }
  const path = await modelPath(source);
  const options = optionsOf(source);
  const onGpu = config.instanceGroup.some(({ kind }) => kind === "KIND_GPU");
  const data = modelData(path, directory, options, onGpu);
  const hosting = hostingOf(source, ISOLATIONS, isNative(data.runtime));
  const backend = tensorflowIn(path, directory, { ...options, runtime: data.runtime });
  const description = await describeModel(data, name);
  return {
    ...backend,
    describe: () => description,
    createExecutor: (context) =>
      backend.createExecutor({ ...context, hosting: { ...hosting, ...context.hosting } }),
  };
};

async function modelPath(source: ModelSource): Promise<string> {
  const { path, isDirectory } = await findModelFile(source, ["model.json", "model.savedmodel"]);
  if (!isDirectory) return path;
  const has = (file: string) =>
    stat(join(path, file)).then(
      () => true,
      () => false,
    );
  if (await has("saved_model.pb")) return path;
  if (await has("model.json")) return join(path, "model.json");
  throw notFound(join(path, "saved_model.pb"), source.name);
}

function optionsOf({ name, config: { parameters } }: ModelSource): Omit<TensorflowOptions, "model"> {
  const signature = parameters.TF_SIGNATURE_DEF?.stringValue;
  const runtime = parameters.runtime?.stringValue;
  if (runtime !== undefined && !TENSORFLOW_RUNTIMES.includes(runtime as TensorflowRuntime)) {
    throw new TritonError(
      "INVALID_ARG",
      `parameter 'runtime' of model '${name}': expected one of ${TENSORFLOW_RUNTIMES.join(", ")}, got '${runtime}'`,
      { reason: "INVALID_CONFIG" },
    );
  }
  return {
    ...(signature === undefined ? {} : { signature }),
    ...(runtime === undefined ? {} : { runtime: runtime as TensorflowRuntime }),
  };
}
