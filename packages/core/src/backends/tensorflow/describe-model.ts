import { emptyConfig } from "../../config/schema/defaults.js";
import type { ModelDescription } from "../../instance/backend.js";
import { type AskedModel, askWorker } from "../ask-worker.js";
import { describeInWorker } from "../describe-in-worker.js";
import { graphDescription } from "./graph-description.js";
import { readModelJson } from "./model-json.js";
import type { TensorflowData } from "./tensorflow-model.js";

/** Describes a model from its `model.json`, without TensorFlow.js. This works for a GraphModel. */
export function quickDescription({
  savedModel,
  path,
}: Pick<TensorflowData, "savedModel" | "path">): ModelDescription | undefined {
  if (savedModel) return undefined;
  const json = readModelJson(path);
  return json.kind === "layers" ? undefined : graphDescription(json);
}

/**
 * Describes a model, in a worker if that needs TensorFlow.
 *
 * @throws TritonError that describes the fault of the model
 */
export async function describeModel(data: TensorflowData, modelName: string): Promise<ModelDescription> {
  const quick = quickDescription(data);
  if (quick !== undefined) return quick;
  const entry = new URL("./tensorflow-model.js", import.meta.url);
  const model: AskedModel = {
    name: modelName,
    version: 1,
    config: { ...emptyConfig(), name: modelName },
    warn: (message) => process.emitWarning(message, "TritonWarning"),
  };
  return askWorker<ModelDescription>({ entry, data, interruptible: true }, model, "description");
}

/** A worker that does not answer within this time is ended. */
const DESCRIBE_WITHIN_MS = 120_000;

/** Describes a model for the synchronous `bind`. This thread blocks meanwhile, as it does to read a file. */
export function describeModelSync(data: TensorflowData): ModelDescription {
  const quick = quickDescription(data);
  if (quick !== undefined) return quick;
  const entry = new URL("./description-program.js", import.meta.url);
  return describeInWorker(entry, data, DESCRIBE_WITHIN_MS, `the TensorFlow model '${data.path}'`);
}
