import { mergeInputs } from "../batch/merge-inputs.js";
import { splitOutputs } from "../batch/split-outputs.js";
import type { InstanceInfo } from "../callable/infer-context.js";
import { type AnyInferFunc, type PlainInferFunc, styleOf, type TensorFunc } from "../callable/infer-func.js";
import { RESCHEDULE } from "../callable/reschedule.js";
import { TritonError } from "../errors/triton-error.js";
import type { OutputChecker } from "../response/check-outputs.js";
import { contextOf, toArrays, toInferRequest } from "./callback-arguments.js";
import type { ExecutableRequest, Execution, ExecutionResult } from "./executor.js";

/** A callback with what it takes to run it. */
export interface Callable {
  readonly fn: AnyInferFunc;
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
}

/** Runs a callback over a batch in the way it wants its requests. Rejects with what the callback throws. */
export async function runCallable(
  callable: Callable,
  execution: Execution,
): Promise<readonly ExecutionResult[]> {
  switch (styleOf(callable.fn)) {
    case "batch":
      return runBatch(callable, execution);
    case "sample":
      return runSample(callable, execution);
    case "requests":
      return runRequests(callable, execution);
  }
}

async function runBatch(
  { fn, info, checker }: Callable,
  execution: Execution,
): Promise<readonly ExecutionResult[]> {
  const { requests } = execution;
  const inputs = execution.mergedInputs ?? mergeInputs(requests.map((request) => request.inputs));
  execution.inputsReady();
  const value = await (fn as unknown as TensorFunc<[], []>)(toArrays(inputs), contextOf(info, execution));
  execution.outputsReady();
  const rows = requests.map((request) => request.rows);
  return splitOutputs(checker.fromCallback(value, totalRows(requests), requestedBy(requests)), rows);
}

/** Rows of the whole batch. */
export function totalRows(requests: readonly ExecutableRequest[]): number {
  return requests.reduce((sum, request) => sum + request.rows, 0);
}

/** Outputs that somebody in the batch wants; empty when one wants all. */
function requestedBy(requests: readonly ExecutableRequest[]): readonly string[] {
  if (requests.some((request) => request.requestedOutputs.length === 0)) return [];
  return [...new Set(requests.flatMap((request) => request.requestedOutputs))];
}

async function runSample(
  { fn, info, checker }: Callable,
  execution: Execution,
): Promise<readonly ExecutionResult[]> {
  const request = execution.requests[0]!;
  execution.inputsReady();
  const value = await (fn as unknown as TensorFunc<[], []>)(
    toArrays(request.inputs),
    contextOf(info, execution),
  );
  execution.outputsReady();
  return [checker.fromCallback(value, request.rows, request.requestedOutputs)];
}

async function runRequests(
  { fn, info, checker }: Callable,
  execution: Execution,
): Promise<readonly ExecutionResult[]> {
  const { requests } = execution;
  const seen = requests.map(toInferRequest);
  execution.inputsReady();
  const values: unknown = await (fn as PlainInferFunc<[], []>)(seen as never, contextOf(info, execution));
  execution.outputsReady();
  if (!Array.isArray(values) || values.length !== requests.length) {
    const got = Array.isArray(values) ? `${values.length} results` : typeof values;
    throw new TritonError(
      "INTERNAL",
      `model '${info.modelName}' must return a list with one result for each of ${requests.length} requests, ` +
        `got ${got}; a function of tensors is wrapped in batch() or sample()`,
    );
  }
  return values.map((value: unknown, i) => {
    if (value === RESCHEDULE) return RESCHEDULE;
    if (value instanceof Error) return TritonError.from(value);
    try {
      return checker.fromCallback(value, requests[i]!.rows, requests[i]!.requestedOutputs);
    } catch (error) {
      return TritonError.from(error);
    }
  });
}
