import type { WorkerBatch, WorkerModel, WorkerResult } from "@tritonjs/core/backend";
import type { Forest } from "./forest.js";
import { type AnswerPlan, Scorer, scoreTensors } from "./scorer.js";

/** Data that a worker thread gets. All workers share the memory of the forest. */
export interface ForestData {
  readonly forest: Forest;
  readonly plan: AnswerPlan;
}

/** Entry of worker threads that score rows. */
export async function load(data: unknown): Promise<WorkerModel> {
  const { forest, plan } = data as ForestData;
  const scorer = new Scorer(forest, plan);
  return {
    ownsOutputs: true,
    execute: async ({ inputs, rows }: WorkerBatch): Promise<WorkerResult> => {
      const total = rows.reduce((sum, one) => sum + one, 0);
      return { merged: await scoreTensors(scorer, inputs, total, false, plan.explains, undefined) };
    },
  };
}
