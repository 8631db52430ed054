import { isDecoupled, type ModelConfig } from "@tritonjs/protocol";
import { styleOf } from "../callable/infer-func.js";
import type { ModelOptions } from "../config/options/model-options.js";
import { isBackend } from "../instance/backend.js";
import { StepwiseExecutor } from "../instance/stepwise/stepwise-executor.js";
import type { ExecutorFactory } from "../model/create-instances.js";
import type { AnyBindOptions } from "./bind-options.js";

/** Changes that continuous batching makes to a binding. */
export interface StepwisePlan {
  /** Options to resolve. Requests reach the step loop one by one. */
  readonly options: ModelOptions;
  problemsWith(config: ModelConfig): string[];
  create(executor: ExecutorFactory): ExecutorFactory;
}

/** Plans how a model is served whose requests run step by step. Undefined for any other model. */
export function planStepwise(
  inferFunc: AnyBindOptions["inferFunc"],
  options: ModelOptions,
): StepwisePlan | undefined {
  const listed = Array.isArray(inferFunc) ? inferFunc : [inferFunc];
  const functions = listed.filter((one) => typeof one === "function");
  const count = functions.filter((fn) => styleOf(fn) === "stepwise").length;
  if (count === 0 && !options.stepwise) return undefined;
  const mixed = isBackend(inferFunc) || count !== functions.length;
  return {
    options: { batcher: false, ...options },
    problemsWith: (config) => [
      ...(mixed
        ? ["config.stepwise is true, but a callback is not made with stepwise(): make all of them with it"]
        : []),
      ...stepwiseProblems(config, options),
    ],
    create: (executor) => (context) =>
      new StepwiseExecutor(executor(context), () => context.info.modelConfig.maxBatchSize),
  };
}

function stepwiseProblems(config: ModelConfig, { stepwise, batcher }: ModelOptions): string[] {
  const problems: string[] = [];
  if (stepwise === false)
    problems.push(
      "config.stepwise is false, but the callback is made with stepwise(): leave config.stepwise out",
    );
  if (config.maxBatchSize < 1) {
    problems.push(
      "a stepwise callback needs config.maxBatchSize: set it to the number of requests that run together",
    );
  }
  if (!isDecoupled(config)) {
    problems.push(
      "config.decoupled is false, but a stepwise callback sends any number of responses: leave config.decoupled out",
    );
  }
  if (batcher || config.dynamicBatching !== undefined) {
    problems.push(
      "config.batcher is given, but a stepwise callback forms its own batches: leave config.batcher out",
    );
  }
  if (config.sequenceBatching !== undefined) {
    problems.push(
      "config.sequence is given, but a stepwise callback keeps its own state between steps: leave config.sequence out",
    );
  }
  return problems;
}
