import { splitOutputs } from "../../batch/split-outputs.js";
import type { InstanceInfo } from "../../callable/infer-context.js";
import { type AnyInferFunc, styleOf } from "../../callable/infer-func.js";
import { SAMPLE_TAKES_ONE } from "../../callable/sample.js";
import { TritonError } from "../../errors/triton-error.js";
import { OutputChecker } from "../../response/check-outputs.js";
import type { ExecutableRequest, Execution } from "../executor.js";
import { type Callable, runCallable } from "../run-callable.js";
import { runDecoupled } from "../run-decoupled.js";
import { SequencesOfSlots } from "./sequences-of-slots.js";
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
  if (styleOf(callable.fn) === "sample" && info.modelConfig.maxBatchSize > 0) {
    throw new TritonError("INVALID_ARG", `model '${info.modelName}': ${SAMPLE_TAKES_ONE}`);
  }
  const sequences = new SequencesOfSlots();
  return {
    ownsOutputs: false,
    execute: ({ requests, ...batch }) => {
      const known = requests.map((request) => ({ ...request, sequence: sequences.of(request) }));
      return execute(callable, { ...batch, requests: known });
    },
  };
}

async function execute(
  callable: Callable,
  { inputs, requests, models, stream }: WorkerBatch,
): Promise<WorkerResult | undefined> {
  const perRequest = splitOutputs(
    inputs,
    requests.map((request) => request.rows),
  );
  const executables = requests.map(
    (request, i): ExecutableRequest => ({ ...request, inputs: perRequest[i]! }),
  );
  const execution: Execution = {
    requests: executables,
    mergedInputs: inputs,
    models,
    decoupled: stream !== undefined,
    get signal() {
      return allAborted(requests.map((request) => request.signal));
    },
    inputsReady() {},
    outputsReady() {},
    isOpen: (index) => stream?.isOpen(index) ?? true,
    writable: (index) => stream?.writable(index),
    send: (index, outputs, final) => stream?.send(index, outputs, final),
    sendError: (index, error, final) => stream?.sendError(index, error, final),
    finish: (index) => stream?.finish(index),
    reschedule: (index) => stream?.reschedule(index),
  };
  if (stream === undefined) return { separate: await runCallable(callable, execution) };
  await runDecoupled(callable, execution);
  return undefined;
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
