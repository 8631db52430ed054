import type { ModelDescription } from "@tritonjs/core/backend";
import { unreadableFile } from "@tritonjs/core/internal/worker";
import { graphDescription, readModelJson } from "./model-json.js";
import { describeSavedModel, readFrozenGraph } from "./saved-model.js";
import type { TensorflowData } from "./tensorflow-worker.js";

/** What a description needs of a model. */
type DescribedModel = Pick<TensorflowData, "format" | "path" | "signature" | "outputs">;

/**
 * Describes a model from its files, without TensorFlow.js. Only the layers of a LayersModel need it. It is also the entry
 * of a thread.
 *
 * @throws TritonError INVALID_ARG for files that are not a model
 */
export function read(model: DescribedModel): ModelDescription | undefined {
  const { format, path, signature, outputs } = model;
  try {
    if (format === "saved_model") return describeSavedModel(path, signature);
    if (format === "frozen_graph") return readFrozenGraph(path, outputs).description;
    if (format === "keras") return undefined;
    const json = readModelJson(path);
    return json.kind === "layers" ? undefined : graphDescription(json);
  } catch (error) {
    throw unreadableFile(`the TensorFlow model '${path}'`, error);
  }
}
