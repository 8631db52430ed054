import { availableParallelism } from "node:os";
import { type Backend, type Executor, type ExecutorContext, workerExecutor } from "@tritonjs/core/backend";
import { inlineRequests, nextTurn } from "@tritonjs/core/internal";
import { assertOptions, type DescribedTensor, type Isolation, type Tensor } from "@tritonjs/protocol";
import type { Forest } from "./forest.js";
import { addWorkMemory } from "./margins.js";
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
export const FOREST_ISOLATIONS: readonly Isolation[] = ["inline", "worker"];

/**
 * The backend `fil` for a model that has been read.
 *
 * @param squeezes true to leave out dimensions of 1 from the shapes of outputs
 */
export function forestBackend(forest: Forest, plan: AnswerPlan, squeezes: boolean): Backend {
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
