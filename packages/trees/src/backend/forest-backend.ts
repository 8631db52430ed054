import { type Backend, workerExecutor } from "@tritonjs/core/backend";
import type { DescribedTensor } from "@tritonjs/protocol";
import type { Forest } from "../forest/forest.js";
import type { AnswerPlan } from "../scoring/answer-plan.js";
import { EXPLANATION, INPUT, OUTPUT, type OutputShapes } from "../scoring/score-tensors.js";
import { Scorer } from "../scoring/scorer.js";
import type { ForestData } from "./forest-model.js";
import { InlineForestExecutor } from "./inline-executor.js";
import { sharedForest } from "./shared-forest.js";

/** Largest batch, unless the configuration has another: that of the examples of Triton's documentation. */
const MAX_BATCH_SIZE = 32_768;

/** The backend `fil` for a model that has been read. */
export function forestBackend(forest: Forest, plan: AnswerPlan, shapes: OutputShapes): Backend {
  // Reports a model that cannot be explained before it is loaded.
  const { explanationColumns } = new Scorer(forest, plan);
  let data: ForestData | undefined;
  return {
    backendName: "fil",
    platform: "",
    isolations: ["inline", "worker"],
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
      data ??= { forest: sharedForest(forest), plan, shapes };
      const entry = new URL("./forest-model.js", import.meta.url);
      return workerExecutor(
        { entry, data, interruptible: true, tensorsOnly: true, reusesThread: true },
        context,
      );
    },
  };
}

function fp32(name: string, columns: number): DescribedTensor {
  return { name, dtype: "FP32", shape: [-1, columns] };
}
