import { TritonError } from "@tritonjs/protocol";
import { requestDecoratorsOf } from "../callable/decorators.js";
import type { InstanceInfo } from "../callable/infer-context.js";
import { type AnyInferFunc, type PlainInferFunc, styleOf, type TensorFunc } from "../callable/infer-func.js";
import { RESCHEDULE } from "../callable/reschedule.js";
import { STEPWISE_IS_TOLD } from "../callable/stepwise.js";
import type { OutputChecker } from "../response/check-outputs.js";
import { contextOf, toCallbackArrays, toInferRequest } from "./callback-arguments.js";
import type { CallbackExecution, ExecutableRequest, ExecutionResult } from "./executor.js";
import { divideOutputs, joinInputs } from "./join-batch.js";
import { runDecorated } from "./run-decorated.js";

/** A callback with everything needed to run it. */
export interface Callable {
  readonly fn: AnyInferFunc;
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
}

/** Runs a callback over a batch in the callback's calling style. Rejects with the error that the callback throws. */
export async function runCallable(
  callable: Callable,
  execution: CallbackExecution,
): Promise<readonly ExecutionResult[]> {
  const decorators = requestDecoratorsOf(callable.fn);
  if (decorators.length === 0) return runStyled(callable, execution);
  const { modelConfig } = callable.info;
  const run = (part: CallbackExecution) => runStyled(callable, part);
  return (await runDecorated(decorators, modelConfig, execution, run))!;
}

function runStyled(callable: Callable, execution: CallbackExecution): Promise<readonly ExecutionResult[]> {
  switch (styleOf(callable.fn)) {
    case "batch":
      return runBatch(callable, execution);
    case "sample":
      return runSample(callable, execution);
    case "requests":
      return runRequests(callable, execution);
    case "stepwise":
      throw new TritonError("INTERNAL", `model '${callable.info.modelName}': ${STEPWISE_IS_TOLD}`);
  }
}

async function runBatch(
  { fn, info, checker }: Callable,
  execution: CallbackExecution,
): Promise<readonly ExecutionResult[]> {
  const { requests } = execution;
  const inputs = joinInputs(execution);
  execution.inputsReady();
  const value = await (fn as unknown as TensorFunc<[], []>)(
    toCallbackArrays(inputs, info.modelName),
    contextOf(info, execution),
  );
  execution.outputsReady();
  return divideOutputs(execution, checker.fromTensorFunc(value, totalRows(requests), requestedBy(requests)));
}

/** Rows of the whole batch. */
export function totalRows(requests: readonly ExecutableRequest[]): number {
  return requests.reduce((sum, request) => sum + request.rows, 0);
}

/** Outputs that any request of the batch wants; empty if one wants all. */
function requestedBy(requests: readonly ExecutableRequest[]): readonly string[] {
  if (requests.some((request) => request.requestedOutputs.length === 0)) return [];
  return [...new Set(requests.flatMap((request) => request.requestedOutputs))];
}

async function runSample(
  { fn, info, checker }: Callable,
  execution: CallbackExecution,
): Promise<readonly ExecutionResult[]> {
  const request = execution.requests[0]!;
  const inputs = toCallbackArrays(joinInputs(execution), info.modelName);
  execution.inputsReady();
  const call = fn as unknown as TensorFunc<[], []>;
  const value = await request.runInContext(() => call(inputs, contextOf(info, execution)));
  execution.outputsReady();
  return divideOutputs(execution, checker.fromTensorFunc(value, request.rows, request.requestedOutputs));
}

/**
 * Checks the results of a plain callback.
 *
 * @throws TritonError INTERNAL unless there is one for each request.
 */
export function resultsOf(values: unknown, model: string, count: number): readonly unknown[] {
  if (!Array.isArray(values)) {
    const got = values === null ? "null" : typeof values;
    throw new TritonError(
      "INTERNAL",
      `Outputs returned by \`${model}\` model callable must be list of response dicts with ndarrays. ` +
        `Got outputs=${got} instead. Wrap a function of tensors in batch() or sample().`,
      { reason: "INVALID_OUTPUT" },
    );
  }
  if (values.length !== count) {
    throw new TritonError(
      "INTERNAL",
      `Number of outputs returned by \`${model}\` inference callable (${values.length}) does not match number of ` +
        `requests (${count}) received from Triton.`,
      { reason: "INVALID_OUTPUT" },
    );
  }
  return values;
}

async function runRequests(
  { fn, info, checker }: Callable,
  execution: CallbackExecution,
): Promise<readonly ExecutionResult[]> {
  const { requests } = execution;
  const seen = requests.map((request) => toInferRequest(request, info.modelName));
  execution.inputsReady();
  const values: unknown = await (fn as PlainInferFunc<[], []>)(seen as never, contextOf(info, execution));
  execution.outputsReady();
  return resultsOf(values, info.modelName, requests.length).map((value: unknown, i) => {
    if (value === RESCHEDULE) return RESCHEDULE;
    if (value instanceof Error) return TritonError.from(value);
    try {
      return checker.fromCallback(value, requests[i]!.rows, requests[i]!.requestedOutputs);
    } catch (error) {
      return TritonError.from(error);
    }
  });
}
