import { batch, type ModelHandle, type ModelOptions, type Triton } from "@tritonjs/core";
import type { NdArray } from "ndarray";

export const pipelineInputs = [{ name: "x", dtype: "INT32", shape: [1] }] as const;
export const pipelineOutputs = [{ name: "y", dtype: "INT32", shape: [1] }] as const;

/** Any model from `x` to `y`. */
export type Stage = ModelHandle<typeof pipelineInputs, typeof pipelineOutputs>;

/** What a stage does with its rows. */
export type StageFunc = (
  x: NdArray<Int32Array>,
  signal: AbortSignal,
) => NdArray<Int32Array> | Promise<NdArray<Int32Array>>;

/** Binds a model from `x` to `y`. */
export function bindStage(
  triton: Triton,
  modelName: string,
  run: StageFunc,
  config: ModelOptions = {},
): Stage {
  return triton.bind({
    modelName,
    inputs: pipelineInputs,
    outputs: pipelineOutputs,
    inferFunc: batch(async ({ x }, { signal }) => ({ y: await run(x, signal) })),
    config,
  });
}

/** Binds a decoupled model that counts from 1 to `x`, and reports its progress. */
export function bindCounter(triton: Triton, modelName: string): { made: number; ended: boolean } {
  const progress = { made: 0, ended: false };
  triton.bind({
    modelName,
    inputs: pipelineInputs,
    outputs: pipelineOutputs,
    inferFunc: batch(function* ({ x }) {
      try {
        for (let i = 1; i <= x.data[0]!; i++) {
          progress.made++;
          yield { y: [[i]] };
        }
      } finally {
        progress.ended = true;
      }
    }),
  });
  return progress;
}

/** A step from one tensor to another by a model from `x` to `y`. */
export const stage = (modelName: string, from: string, to: string) => ({
  modelName,
  inputMap: { x: from },
  outputMap: { y: to },
});

/** Binds an ensemble from `x` to `y`. */
export function bindPipeline(
  triton: Triton,
  steps: readonly ReturnType<typeof stage>[],
  config: { readonly maxInflightRequests?: number } = {},
  modelName = "pipeline",
): Stage {
  return triton.bindEnsemble({
    modelName,
    inputs: pipelineInputs,
    outputs: pipelineOutputs,
    steps,
    config,
  });
}

/** Adds to each element in place. */
export const adds =
  (amount: number): StageFunc =>
  (x) => {
    for (let i = 0; i < x.data.length; i++) x.data[i]! += amount;
    return x;
  };

/** A stage that answers when the test says so. */
export function heldStage() {
  const waiting: (() => void)[] = [];
  const seen = { runs: 0, aborted: 0 };
  const run: StageFunc = async (x, signal) => {
    seen.runs++;
    signal.addEventListener("abort", () => seen.aborted++);
    await new Promise<void>((resolve) => waiting.push(resolve));
    return x;
  };
  return { run, seen, release: () => waiting.splice(0).forEach((resolve) => void resolve()) };
}
