import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Backend, type Executor, workerExecutor } from "@tritonjs/core/backend";
import { inlineRequests, nextTurn } from "@tritonjs/core/internal";
import {
  assertOptions,
  type DescribedTensor,
  errorFor,
  type Isolation,
  optionTypes,
  type Tensor,
} from "@tritonjs/protocol";
import type { Forest } from "./forest.js";
import { detectModelType, type ModelType, readForest } from "./read-forest.js";
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
  assertOptions("trees()", options, TREES_OPTION_TYPES, {}, ["model"]);
  const forest = openForest(options);
  const plan = planAnswers(forest, settingsOf(options));
  return forestBackend(forest, plan, false);
}

/** Reads a model as {@link trees} does. */
export function openForest(options: TreesOptions): Forest {
  const { model, modelType, rounds, allowUnknownFields = false } = options;
  const bytes = model instanceof Uint8Array ? model : readFile(model);
  return readForest(bytes, modelType ?? detectModelType(bytes), { rounds, allowUnknownFields });
}

/** The settings of options, with defaults. @throws TritonError INVALID_ARG for a threshold that is not a number */
function settingsOf(options: TreesOptions) {
  const {
    isClassifier = false,
    predictProba = false,
    bothClasses = false,
    threshold = 0.5,
    treeShap = false,
  } = options;
  if (typeof threshold !== "number" || Number.isNaN(threshold)) {
    throw errorFor("INVALID_OPTION", `threshold: expected a number, got ${threshold}`);
  }
  return { isClassifier, predictProba, bothClasses, threshold: Math.fround(threshold), explains: treeShap };
}

function readFile(model: string | URL): Uint8Array {
  const path = model instanceof URL ? fileURLToPath(model) : model;
  try {
    return readFileSync(path);
  } catch (error) {
    const text = `cannot read the tree model '${path}': ${(error as Error).message}`;
    throw errorFor("MODEL_FILES_NOT_FOUND", text, { cause: error });
  }
}

/** Options of {@link trees}. */
export interface TreesOptions {
  /** Path of the model file, or its bytes. */
  readonly model: string | URL | Uint8Array;
  /**
   * Format of the file.
   *
   * @default recognized by the file's first bytes
   */
  readonly modelType?: ModelType;
  /**
   * True to answer the class of each row as a number: the class with the largest score, or for a binary model 1 if its
   * score is above `threshold`. False for the scores themselves, as `predict` of the library gives them.
   *
   * @default false
   */
  readonly isClassifier?: boolean;
  /**
   * True for a classifier that answers the probability of each class, and a binary one that of class 1. Without
   * `isClassifier`, the scores of a multi-class model are still made by softmax.
   *
   * @default false
   */
  readonly predictProba?: boolean;
  /** True for a binary classifier that answers the probabilities of class 0 and class 1. @default false */
  readonly bothClasses?: boolean;
  /** Scores above it are class 1 of a binary classifier. @default 0.5 */
  readonly threshold?: number;
  /**
   * True for a second output `treeshap_output` (FP32, `[rows, classes * (features + 1)]`, 1 class for a regression):
   * for each class, the part of each feature in the sum of a row, then the expected sum. The file must have the weights
   * of its training rows, as those of XGBoost and LightGBM have.
   *
   * @default false
   */
  readonly treeShap?: boolean;
  /**
   * Boosting rounds to use: the first ones, or "best" for those up to `best_iteration` of XGBoost's early stopping.
   *
   * @default all, as `Booster.predict` of XGBoost does
   */
  readonly rounds?: number | "best";
  /**
   * Whether fields of an XGBoost document that are not known are ignored. They may change predictions, so they are
   * refused otherwise.
   *
   * @default false
   */
  readonly allowUnknownFields?: boolean;
}

const TREES_OPTION_TYPES = optionTypes<TreesOptions>({
  model: ["object", "string"],
  modelType: "string",
  isClassifier: "boolean",
  predictProba: "boolean",
  bothClasses: "boolean",
  threshold: "any",
  treeShap: "boolean",
  rounds: ["number", "string"],
  allowUnknownFields: "boolean",
});

/**
 * A tree ensemble to call directly, for callbacks and programs without a server: synchronous, in microseconds for a
 * row.
 *
 * @example
 * ```ts
 * const fraud = new TreeModel({ model: "fraud.json" });
 * const [probability] = fraud.predict(Float32Array.of(120.5, 3, Number.NaN));
 * ```
 */
export class TreeModel {
  readonly #scorer: Scorer;

  /** @throws TritonError as {@link trees} */
  constructor(options: TreesOptions) {
    const forest = openForest(options);
    this.#scorer = new Scorer(forest, planAnswers(forest, settingsOf(options)));
  }

  /** Number of values of a row. */
  get features(): number {
    return this.#scorer.forest.features;
  }

  /** Number of answers of a row. */
  get columns(): number {
    return this.#scorer.plan.columns;
  }

  /**
   * Scores rows.
   *
   * @param values one row or several, one after another, `features` values each; NaN for missing values
   * @returns `columns` answers for each row
   * @throws TritonError INVALID_ARG unless `values` are whole rows
   */
  predict(values: Float32Array): Float32Array {
    const rows = this.#rowsOf(values);
    const answers = new Float32Array(rows * this.columns);
    this.#scorer.score(values, 0, rows, answers);
    return answers;
  }

  /**
   * Explains rows; needs the option `treeShap`.
   *
   * @returns for each row and class the part of each feature, then the expected sum
   * @throws TritonError INVALID_ARG unless `values` are whole rows, and without the option
   */
  explain(values: Float32Array): Float32Array {
    const rows = this.#rowsOf(values);
    if (!this.#scorer.plan.explains) {
      throw errorFor("INVALID_OPTION", "explain: expected the option treeShap, got a model without it");
    }
    const explanations = new Float32Array(rows * this.#scorer.explanationColumns);
    this.#scorer.explain(values, 0, rows, explanations);
    return explanations;
  }

  #rowsOf(values: Float32Array): number {
    const rows = values.length / this.features;
    if (values instanceof Float32Array && Number.isInteger(rows)) return rows;
    const text = `rows: expected a Float32Array of a multiple of ${this.features} values, got ${values.length}`;
    throw errorFor("INVALID_INPUT", text);
  }
}

/** Largest batch, unless the configuration has another: that of the examples of Triton's documentation. */
const MAX_BATCH_SIZE = 32_768;

/** Where instances can run, the default first. */
export const FOREST_ISOLATIONS: readonly Isolation[] = ["inline", "worker"];

/**
 * The backend `fil` for a model that has been read.
 *
 * @param squeezes true to leave out dimensions of 1 from the shapes of outputs
 */
export function forestBackend(forest: Forest, plan: AnswerPlan, squeezes: boolean): Backend {
  // Throws for a model that cannot be explained, before an instance loads.
  const { explanationColumns } = new Scorer(forest, plan);
  let data: ForestData | undefined;
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
      if (context.hosting.isolation !== "worker") return inlineForest(new Scorer(forest, plan), squeezes);
      data ??= { forest: sharedForest(forest), plan };
      const entry = new URL("./scorer.js", import.meta.url);
      const executor = workerExecutor(
        { entry, data, interruptible: true, tensorsOnly: true, reusesThread: true },
        context,
      );
      return squeezes ? squeezing(executor) : executor;
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

/** A copy of a forest whose arrays threads share. */
function sharedForest(forest: Forest): Forest {
  const entries = Object.entries(forest).map(([key, value]) => [
    key,
    ArrayBuffer.isView(value) ? shared(value) : value,
  ]);
  return Object.fromEntries(entries) as Forest;
}

function shared(array: ArrayBufferView): ArrayBufferView {
  const memory = new SharedArrayBuffer(array.byteLength);
  new Uint8Array(memory).set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  return array instanceof Int32Array ? new Int32Array(memory) : new Float64Array(memory);
}
