import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Backend } from "@tritonjs/core/backend";
import { TritonError } from "@tritonjs/protocol";
import type { Forest } from "../forest/forest.js";
import { detectModelType } from "../readers/model-type.js";
import { readForest } from "../readers/read-forest.js";
import { planAnswers } from "../scoring/answer-plan.js";
import { forestBackend } from "./forest-backend.js";
import type { TreesOptions } from "./options.js";

/**
 * A backend that runs a tree ensemble of XGBoost, LightGBM, Treelite or scikit-learn, without native code. The input is
 * `input__0` (FP32, `[rows, features]`, NaN for missing values), and the output `output__0` (FP32, `[rows, scores]`):
 * the file decides on both, so `bind` needs no specifications. Scores are those of the library's own `predict`.
 *
 * Rows are scored on this thread, with a turn of the event loop after each millisecond. `isolation: "worker"` in the
 * instance group scores them in worker threads, which share the model's memory.
 *
 * @throws TritonError NOT_FOUND for a missing file; INVALID_ARG for a broken one and for invalid options; UNSUPPORTED
 * for models that cannot be served, for instance with several targets
 * @example
 * ```ts
 * triton.bind({ modelName: "fraud", inferFunc: trees({ model: "fraud.json" }) });
 * ```
 */
export function trees(options: TreesOptions): Backend {
  const forest = openForest(options);
  const plan = planAnswers(forest, settingsOf(options));
  return forestBackend(forest, plan, { squeezed: false });
}

/** Reads a model as {@link trees} does. */
export function openForest(options: TreesOptions): Forest {
  const { model, modelType, rounds, allowUnknownFields = false } = options;
  const bytes = model instanceof Uint8Array ? model : readFile(model);
  return readForest(bytes, modelType ?? detectModelType(bytes), { rounds, allowUnknownFields });
}

/** The settings of options, with defaults. @throws TritonError INVALID_ARG for a threshold that is not a number */
export function settingsOf(options: TreesOptions) {
  const {
    isClassifier = false,
    predictProba = false,
    bothClasses = false,
    threshold = 0.5,
    treeShap = false,
  } = options;
  if (typeof threshold !== "number" || Number.isNaN(threshold)) {
    throw new TritonError("INVALID_ARG", `threshold: expected a number, got ${threshold}`, {
      reason: "INVALID_OPTION",
    });
  }
  return { isClassifier, predictProba, bothClasses, threshold: Math.fround(threshold), explains: treeShap };
}

function readFile(model: string | URL): Uint8Array {
  const path = model instanceof URL ? fileURLToPath(model) : model;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new TritonError("NOT_FOUND", `cannot read the tree model '${path}': ${(error as Error).message}`, {
      reason: "MODEL_FILES_NOT_FOUND",
      cause: error,
    });
  }
}
