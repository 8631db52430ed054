import { stat } from "node:fs/promises";
import { type BackendFactory, findModelFile, hostingOf } from "@tritonjs/core/backend";
import { DeclaredParameters, readFileInThread } from "@tritonjs/core/internal";
import { errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { FOREST_ISOLATIONS, forestBackend } from "./forest-backend.js";
import { type ForestFile, read } from "./forest-file.js";
import { FILE_NAMES, type ModelType, modelTypeOf } from "./read-forest.js";
import { EXPLANATION, OUTPUT, planAnswers } from "./scorer.js";

/*
 * `@tritonjs/backends/trees`: tree ensembles, as Triton's FIL backend serves them, without native code.
 */

export { trees } from "./forest-backend.js";
export { detectModelType, FILE_NAMES as TREE_FILE_NAMES, type ModelType } from "./read-forest.js";
export type { TreesOptions } from "./tree-model.js";
export { TreeModel } from "./tree-model.js";

const PARAMETERS = new DeclaredParameters({
  value: [
    "model_type",
    "is_classifier",
    "output_class",
    "predict_proba",
    "threshold",
    "xgboost_allow_unknown_field",
    "use_experimental_optimizations",
    "algo",
    "threads_per_tree",
    "storage_type",
    "blocks_per_sm",
  ],
});

type FilParameter = Parameters<typeof PARAMETERS.text>[1];

/**
 * The backend `fil` for models of a repository. The format, and with it the usual name of the file, is the parameter
 * `model_type`. Outputs have the shapes of Triton's backend, without dimensions of 1. The parameter `isolation` set to
 * `worker` scores in worker threads.
 */
const fil = PARAMETERS.declaredBy(async (source) => {
  const { config, warn } = source;
  const parameters = readFilParameters(config, (message) => warn(`model '${source.name}': ${message}`));
  const { modelType, allowUnknownFields } = parameters;
  const hosting = hostingOf(source, FOREST_ISOLATIONS, false);
  const { path } = await findModelFile(source, [FILE_NAMES[modelType]]);
  const { size: bytes } = await stat(path);
  const data: ForestFile = { path, type: modelType, options: { allowUnknownFields, rounds: undefined } };
  const forest = await readFileInThread({ what: path, bytes, entry: READER, data }, () => read(data));
  const plan = planAnswers(forest, {
    ...parameters,
    bothClasses: parameters.predictProba && forest.groups === 1 && columnsOf(config) === 2,
    explains: config.output.some(({ name }) => name === EXPLANATION),
  });
  return {
    ...forestBackend(forest, plan, true),
    hosting,
    checkConfig: ({ name, maxBatchSize, input, output }) => {
      if (maxBatchSize > 0 || (input.length === 0 && output.length === 0)) return;
      const text = `model '${name}': max_batch_size: expected at least 1, got ${maxBatchSize}`;
      throw errorFor("INVALID_CONFIG", text);
    },
  };
});

/** Number of columns that a configuration gives the output; undefined if it does not. */
function columnsOf({ output }: ModelConfig): number | undefined {
  const found = output.find(({ name }) => name === OUTPUT);
  return (found?.reshape?.shape ?? found?.dims)?.at(-1);
}

const READER = new URL("./forest-file.js", import.meta.url);

interface FilParameters {
  readonly modelType: ModelType;
  readonly isClassifier: boolean;
  readonly predictProba: boolean;
  readonly threshold: number;
  readonly allowUnknownFields: boolean;
}

/** Parameters that Triton removed in 25.09, with their replacements. */
const REPLACED = [
  ["algo", "layout"],
  ["threads_per_tree", "chunk_size"],
  ["output_class", "is_classifier"],
] as const;
const REMOVED = ["storage_type", "blocks_per_sm"] as const;

/**
 * Reads the parameters of Triton's FIL backend. Parameters that tune the GPU, and `cpu_nthread`, have no effect here.
 *
 * @param warn gets a text for each parameter that Triton has removed
 * @throws TritonError INVALID_ARG, INTERNAL or UNSUPPORTED in the words of Triton's backend
 */
function readFilParameters(config: ModelConfig, warn: (message: string) => void): FilParameters {
  const text = (key: FilParameter) => PARAMETERS.text({ config }, key);
  for (const [removed, next] of REPLACED) {
    if ((text(removed) ?? "") === "") continue;
    warn(`The \`${removed}\` parameter has been removed in 25.09 release. Use \`${next}\` instead.`);
  }
  for (const removed of REMOVED) {
    if ((text(removed) ?? "") !== "") warn(`The \`${removed}\` parameter has been removed in 25.09 release.`);
  }
  if (text("use_experimental_optimizations") === "true")
    warn("use_experimental_optimizations option is deprecated. It will be removed in the 25.10 release.");
  const flag = (key: string, given: string | undefined, otherwise?: boolean): boolean => {
    if (given === undefined && otherwise !== undefined) return otherwise;
    if (given === "true" || given === "false") return given === "true";
    if (given === undefined)
      throw errorFor("INVALID_CONFIG", `Required parameter ${key} not found in config`);
    throw new TritonError("INTERNAL", `Expected 'true' or 'false' for parameter '${key}', got: '${given}'`);
  };
  const older = text("output_class");
  const hasOlder = older === "true" || older === "false";
  const isClassifier = flag("is_classifier", hasOlder ? older : text("is_classifier"));
  const predictProba = flag("predict_proba", text("predict_proba"), false);
  const modelType = modelTypeOf(text("model_type") ?? "xgboost");
  const unknownFields = "xgboost_allow_unknown_field";
  const allowUnknownFields = flag(unknownFields, text(unknownFields), false);
  const threshold = isClassifier ? Number.parseFloat(text("threshold") ?? "0.5") : 0.5;
  if (Number.isNaN(threshold)) throw errorFor("INVALID_CONFIG", "Bad input for parameter threshold");
  return { predictProba, modelType, allowUnknownFields, isClassifier, threshold: Math.fround(threshold) };
}

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = { fil };
