import { type Backend, type Executor, workerExecutor } from "@tritonjs/core/backend";
import type { DescribedTensor, Isolation, Tensor } from "@tritonjs/protocol";
import type { Forest } from "../forest/forest.js";
import type { AnswerPlan } from "../scoring/answer-plan.js";
import { EXPLANATION, INPUT, OUTPUT, type OutputShapes } from "../scoring/score-tensors.js";
import { Scorer } from "../scoring/scorer.js";
import type { ForestData } from "./forest-model.js";
import { InlineForestExecutor } from "./inline-executor.js";
import { sharedForest } from "./shared-forest.js";

/** Largest batch, unless the configuration has another: that of the examples of Triton's documentation. */
const MAX_BATCH_SIZE = 32_768;

/** Where instances can run, the default first. */
export const FOREST_ISOLATIONS: readonly Isolation[] = ["inline", "worker"];

/** The backend `fil` for a model that has been read. */
export function forestBackend(forest: Forest, plan: AnswerPlan, shapes: OutputShapes): Backend {
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
      if (context.hosting.isolation !== "worker")
        return new InlineForestExecutor(new Scorer(forest, plan), shapes);
      data ??= { forest: sharedForest(forest), plan };
      const entry = new URL("./forest-model.js", import.meta.url);
      const executor = workerExecutor(
        { entry, data, interruptible: true, tensorsOnly: true, reusesThread: true },
        context,
      );
      return shapes.squeezed ? squeezing(executor) : executor;
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
