import { splitOutputs } from "../../batch/split-outputs.js";
import type { InstanceInfo } from "../../callable/infer-context.js";
import type { AnyInferFunc } from "../../callable/infer-func.js";
import { TritonError } from "../../errors/triton-error.js";
import { OutputChecker } from "../../response/check-outputs.js";
import type { ExecutableRequest } from "../executor.js";
import { type Callable, runCallable } from "../run-callable.js";
import type { WorkerBatch, WorkerModel, WorkerResult } from "./worker-model.js";

/** Entry of workers that run a user's module: its default export is the callback. */
export async function load(data: unknown, info: InstanceInfo): Promise<WorkerModel> {
  const { module } = data as { module: string };
  const fn: unknown = ((await import(module)) as { default?: unknown }).default;
  if (typeof fn !== "function") {
    throw new TritonError(
      "INVALID_ARG",
      `model '${info.modelName}': the module ${module} must export its callback as default, got ${typeof fn}`,
    );
  }
  const callable = { fn: fn as AnyInferFunc, info, checker: new OutputChecker(info.modelConfig) };
  return { ownsOutputs: false, execute: (batch) => execute(callable, batch) };
}

async function execute(callable: Callable, { inputs, requests }: WorkerBatch): Promise<WorkerResult> {
  const perRequest = splitOutputs(
    inputs,
    requests.map((request) => request.rows),
  );
  const executables = requests.map(
    (request, i): ExecutableRequest => ({ ...request, inputs: perRequest[i]! }),
  );
  return {
    separate: await runCallable(callable, {
      requests: executables,
      mergedInputs: inputs,
      get signal() {
        return allAborted(requests.map((request) => request.signal));
      },
      inputsReady() {},
      outputsReady() {},
    }),
  };
}

/** Aborted when all of the signals are. */
function allAborted(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController();
  const check = () => {
    if (signals.every((signal) => signal.aborted)) controller.abort();
  };
  for (const signal of signals) signal.addEventListener("abort", check, { once: true });
  check();
  return controller.signal;
}
