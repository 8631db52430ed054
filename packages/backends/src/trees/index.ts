import { stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import {
  type Backend,
  type BackendFactory,
  type Executor,
  type ExecutorContext,
  findModelFile,
  hostingOf,
  workerExecutor,
} from "@tritonjs/core/backend";
import { DeclaredParameters, inlineRequests, nextTurn } from "@tritonjs/core/internal";
import {
  assertOptions,
  type DescribedTensor,
  errorFor,
  type Isolation,
  type ModelConfig,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { readFileInThread } from "../description/describe-in-worker.js";
import type { Forest } from "./forest.js";
import { type ForestFile, read } from "./forest-file.js";
import { addWorkMemory } from "./margins.js";
import { FILE_NAMES, type ModelType, modelTypeOf } from "./read-forest.js";
import {
  type AnswerPlan,
  EXPLANATION,
  type ForestData,
  INPUT,
  OUTPUT,
  planAnswers,
  Scorer,
  scoreTensors,
} from "./scorer.js";
import { openForest, settingsOf, TREES_OPTION_TYPES, type TreesOptions } from "./tree-model.js";

/*
 * `@tritonjs/backends/trees`: tree ensembles, as Triton's FIL backend serves them, without native code.
 */

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

/**
 * A backend that runs a tree ensemble of XGBoost, LightGBM, Treelite or scikit-learn, without native code. The input is
 * `input__0` (FP32, `[rows, features]`, NaN for missing values), and the output `output__0` (FP32, `[rows, scores]`):
 * the file decides on both, so `bind` needs no specifications. Scores are those of the library's own `predict`.
 *
 * Rows are scored on this thread, with a turn of the event loop after each millisecond; batches that take more than four
 * milliseconds in a worker thread, which shares the model's memory. `isolation` of the instance group chooses one for all
 * batches.
 *
 * @throws TritonError NOT_FOUND for a missing file; INVALID_ARG for a broken one and for invalid options; UNSUPPORTED
 * for models that cannot be served, for instance with several targets
 * @example
 * ```ts
 * triton.bind({ modelName: "fraud", inferFunc: trees({ model: "fraud.json" }) });
 * ```
 */
export function trees(options: TreesOptions): Backend {
  assertOptions("trees()", options, TREES_OPTION_TYPES, {}, ["model"]);
  const forest = openForest(options);
  const plan = planAnswers(forest, settingsOf(options));
  return forestBackend(forest, plan, false);
}

/** Largest batch, unless the configuration has another: that of the examples of Triton's documentation. */
const MAX_BATCH_SIZE = 32_768;

/**
 * Slices of a millisecond above which a batch is scored in a worker. A worker takes 0.1 to 0.2 ms longer: 5% of the
 * smallest such batch.
 */
const SLICES_INLINE = 4;

/** Where instances can run, the default first. */
const FOREST_ISOLATIONS: readonly Isolation[] = ["inline", "worker"];

/**
 * The backend `fil` for a model that has been read.
 *
 * @param squeezes true to leave out dimensions of 1 from the shapes of outputs
 */
function forestBackend(forest: Forest, plan: AnswerPlan, squeezes: boolean): Backend {
  // Throws for a model that cannot be explained, before an instance loads.
  const scorer = new Scorer(forest, plan);
  const { explanationColumns } = scorer;
  const spareWork: number[] = [];
  return {
    backendName: "fil",
    platform: "",
    isolations: FOREST_ISOLATIONS,
    describe: () => ({
      maxBatchSize: MAX_BATCH_SIZE,
      inputs: [fp32(INPUT, forest.features)],
      outputs: [
        fp32(OUTPUT, plan.columns),
        ...(plan.explains ? [fp32(EXPLANATION, explanationColumns)] : []),
      ],
    }),
    createExecutor: (context) => {
      if (context.placement.kind === "KIND_GPU") {
        context.log.warning(
          `model '${context.info.modelName}': its trees are scored on the CPU; KIND_GPU has no effect`,
        );
      }
      const inWorker = () => {
        const executor = forestWorker(forest, plan, spareWork, context);
        return squeezes ? squeezing(executor) : executor;
      };
      if (context.hosting.isolation === "worker") return inWorker();
      const inline = inlineForest(scorer, squeezes);
      const chooses = context.hosting.isolation === undefined && availableParallelism() > 1;
      return chooses ? largeInWorker(inline, SLICES_INLINE * scorer.rowsPerSlice, inWorker) : inline;
    },
  };
}

/** @param spareWork addresses of working memory of workers that have stopped */
function forestWorker(
  forest: Forest,
  plan: AnswerPlan,
  spareWork: number[],
  context: ExecutorContext,
): Executor {
  const workAt = spareWork.pop() ?? addWorkMemory(forest);
  const data: ForestData = { forest, plan, workAt };
  const entry = new URL("./scorer.js", import.meta.url);
  const executor = workerExecutor(
    { entry, data, interruptible: true, tensorsOnly: true, reusesThread: true },
    context,
  );
  const stop = executor.stop.bind(executor);
  executor.stop = async () => {
    await stop();
    spareWork.push(workAt);
  };
  return executor;
}

/**
 * Adds a worker to an executor on this thread. The first batch of more than `most` rows starts it, and later ones are
 * scored there.
 */
function largeInWorker(inline: Executor, most: number, inWorker: () => Executor): Executor {
  let worker: Executor | undefined;
  let isReady = false;
  const start = () => {
    worker = inWorker();
    // Without a healthy worker, this thread scores all batches.
    worker.onHealth = (healthy) => (isReady = healthy);
    worker.start().then(
      () => (isReady = true),
      () => {},
    );
  };
  return {
    ...inline,
    execute: (execution) => {
      const rows = execution.requests.reduce((sum, request) => sum + request.rows, 0);
      if (rows <= most) return inline.execute(execution);
      if (isReady) return worker!.execute(execution);
      if (worker === undefined) start();
      return inline.execute(execution);
    },
    stop: async () => {
      await worker?.stop();
    },
  };
}

/** Leaves dimensions of 1 out of the outputs, which a worker answers in the shapes of the configuration. */
function squeezing(executor: Executor): Executor {
  const execute = executor.execute.bind(executor);
  executor.execute = async (execution) => {
    const results = await execute(execution);
    return results?.map((result) =>
      result instanceof Map
        ? new Map([...result].map(([name, tensor]: [string, Tensor]) => [name, squeezed(tensor)]))
        : result,
    );
  };
  return executor;
}

function squeezed(tensor: Tensor): Tensor {
  const { shape } = tensor;
  return shape[1] === 1 ? tensor.reshaped(shape.slice(0, 1)) : tensor;
}

function fp32(name: string, columns: number): DescribedTensor {
  return { name, dtype: "FP32", shape: [-1, columns] };
}

/**
 * Scores requests on this thread. Between slices of about a millisecond, the event loop takes its turn. The inputs are
 * read where they are: requests are not joined.
 */
function inlineForest(scorer: Scorer, squeezed: boolean): Executor {
  let rowsInSlice = 0;
  return inlineRequests(
    ({ inputs, rows, requestedOutputs }) => {
      const wanted = requestedOutputs.length === 0 || requestedOutputs.includes(EXPLANATION);
      return scoreTensors(scorer, inputs, rows, squeezed, wanted && scorer.plan.explains, nextTurn);
    },
    {
      needsTurn: ({ rows }, isFirst) => {
        const isFull = !isFirst && rowsInSlice + rows > scorer.rowsPerSlice;
        rowsInSlice = isFirst || isFull ? rows : rowsInSlice + rows;
        return isFull;
      },
    },
  );
}
