import { readFile } from "node:fs/promises";
import { type BackendFactory, findModelFile, hostingOf } from "@tritonjs/core/backend";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { FILE_NAMES } from "../readers/model-type.js";
import { readForest } from "../readers/read-forest.js";
import { planAnswers } from "../scoring/answer-plan.js";
import { EXPLANATION, OUTPUT } from "../scoring/score-tensors.js";
import { FOREST_ISOLATIONS, forestBackend } from "./forest-backend.js";
import { readFilParameters } from "./parameters.js";

/**
 * The backend `fil` for models of a repository. The format, and with it the usual name of the file, is the parameter
 * `model_type`. Outputs have the shapes of Triton's backend, without dimensions of 1. The parameter `isolation` set to
 * `worker` scores in worker threads.
 */
export const fil: BackendFactory = async (source) => {
  const { config, warn } = source;
  const parameters = readFilParameters(config, (message) => warn(`model '${source.name}': ${message}`));
  const { modelType, allowUnknownFields } = parameters;
  const hosting = hostingOf(source, FOREST_ISOLATIONS, false);
  const { path } = await findModelFile(source, [FILE_NAMES[modelType]]);
  const bytes = await readFile(path);
  const forest = explained(path, () =>
    readForest(bytes, modelType, { allowUnknownFields, rounds: undefined }),
  );
  const plan = planAnswers(forest, {
    ...parameters,
    bothClasses: parameters.predictProba && forest.groups === 1 && columnsOf(config) === 2,
    explains: config.output.some(({ name }) => name === EXPLANATION),
  });
  const backend = forestBackend(forest, plan, { squeezed: true });
  return {
    ...backend,
    createExecutor: (context) =>
      backend.createExecutor({ ...context, hosting: { ...hosting, ...context.hosting } }),
    checkConfig: ({ name, maxBatchSize, input, output }) => {
      if (maxBatchSize > 0 || (input.length === 0 && output.length === 0)) return;
      throw new TritonError(
        "INVALID_ARG",
        `model '${name}': max_batch_size: expected at least 1, got ${maxBatchSize}`,
        {
          reason: "INVALID_CONFIG",
        },
      );
    },
  };
};

/** Number of columns that a configuration gives the output; undefined if it does not. */
function columnsOf({ output }: ModelConfig): number | undefined {
  const found = output.find(({ name }) => name === OUTPUT);
  return (found?.reshape?.shape ?? found?.dims)?.at(-1);
}

/** Adds the path of the file to an error of its reader. */
function explained<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const { code, message, reason } = TritonError.from(error);
    throw new TritonError(code, `cannot load ${path}: ${message}`, { reason, cause: error });
  }
}
