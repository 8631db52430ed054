import { TritonError } from "@tritonjs/protocol";
import { requestDecoratorsOf } from "../callable/decorators.js";
import type { RequestScope } from "../callable/infer-context.js";
import {
  type PlainInferFunc,
  type ResponseSender,
  styleOf,
  type TensorFunc,
} from "../callable/infer-func.js";
import { explainFailure } from "../callable/missing-wrapper.js";
import { RESCHEDULE } from "../callable/reschedule.js";
import { contextOf, toCallbackArrays, toInferRequest } from "./callback-arguments.js";
import type { CallbackExecution } from "./executor.js";
import { divideOutputs, joinInputs } from "./join-batch.js";
import { loopShareOf } from "./loop-share.js";
import { type Callable, resultsOf, totalRows } from "./run-callable.js";
import { runDecorated } from "./run-decorated.js";
import { runStepwise } from "./stepwise/run-stepwise.js";

/**
 * Runs a callback of a decoupled model, whose requests get any number of responses. A generator yields them until it
 * ends; a plain callback sends them through each request's `responseSender`.
 *
 * A generator is asked for the next responses when every consumer keeps up. It is ended early (`return()`) when all
 * requests of the batch have been cancelled.
 */
export async function runDecoupled(callable: Callable, execution: CallbackExecution): Promise<void> {
  const decorators = requestDecoratorsOf(callable.fn);
  if (decorators.length === 0) return runStyled(callable, execution);
  await runDecorated(decorators, callable.info.modelConfig, execution, async (part) => {
    await runStyled(callable, part);
    return undefined;
  });
}

function runStyled(callable: Callable, execution: CallbackExecution): Promise<void> {
  switch (styleOf(callable.fn)) {
    case "batch":
      return runBatch(callable, execution);
    case "sample":
      return runSample(callable, execution);
    case "requests":
      return runRequests(callable, execution);
    case "stepwise":
      runStepwise(callable, execution);
      return Promise.resolve();
  }
}

async function runBatch({ fn, info, checker }: Callable, execution: CallbackExecution): Promise<void> {
  const { requests } = execution;
  const inputs = joinInputs(execution);
  execution.inputsReady();
  const value = (fn as unknown as TensorFunc<[], []>)(
    toCallbackArrays(inputs, info.modelName),
    contextOf(info, execution),
  );
  await forEachStep(value, execution, (outputs) => {
    const split = divideOutputs(execution, checker.fromTensorFunc(outputs, totalRows(requests), []));
    for (let i = 0; i < requests.length; i++) execution.send(i, split[i]!);
  });
  finishAll(execution);
}

async function runSample({ fn, info, checker }: Callable, execution: CallbackExecution): Promise<void> {
  const request = execution.requests[0]!;
  const inputs = toCallbackArrays(joinInputs(execution), info.modelName);
  execution.inputsReady();
  const call = fn as unknown as TensorFunc<[], []>;
  const value = request.runInContext(() => call(inputs, contextOf(info, execution)));
  const send = (outputs: unknown) => {
    const checked = checker.fromTensorFunc(outputs, request.rows, request.requestedOutputs);
    execution.send(0, divideOutputs(execution, checked)[0]!);
  };
  await forEachStep(value, execution, send, request);
  finishAll(execution);
}

async function runRequests(callable: Callable, execution: CallbackExecution): Promise<void> {
  const { fn, info } = callable;
  try {
    await answerRequests(callable, execution);
  } catch (thrown) {
    throw explainFailure(thrown, fn, info.modelName, info.modelConfig.input);
  }
}

async function answerRequests(callable: Callable, execution: CallbackExecution): Promise<void> {
  const { fn, info } = callable;
  const { requests } = execution;
  const seen = requests.map((request, i) =>
    Object.assign(toInferRequest(request, info.modelName), {
      responseSender: senderFor(callable, execution, i),
    }),
  );
  execution.inputsReady();
  const value: unknown = (fn as unknown as PlainInferFunc<[], []>)(seen as never, contextOf(info, execution));
  if ((await value) === undefined) {
    // The senders answer, even after this.
    execution.outputsReady();
    return;
  }
  await forEachStep(value, execution, (results) => {
    const each = resultsOf(results, info.modelName, requests.length);
    for (let i = 0; i < requests.length; i++) sendResult(callable, execution, i, each[i]);
  });
  finishAll(execution);
}

const HERE: RequestScope = { runInContext: (fn) => fn() };

/**
 * Passes each step of a callback's result to `send`: the values that it yields, or the one that it returns.
 *
 * @param scope request in whose context a generator runs, with each of its steps
 */
async function forEachStep(
  value: unknown,
  execution: CallbackExecution,
  send: (step: unknown) => void,
  scope: RequestScope = HERE,
): Promise<void> {
  const settled = await value;
  const iterator = iteratorOf(settled);
  if (iterator === undefined) {
    execution.outputsReady();
    send(settled);
    return;
  }
  const share = loopShareOf(execution.clock);
  const end = () => scope.runInContext(() => iterator.return?.());
  for (;;) {
    const turn = share.begin();
    let next: IteratorResult<unknown>;
    try {
      next = await scope.runInContext(() => iterator.next());
    } finally {
      share.end(turn);
    }
    if (next.done) break;
    try {
      send(next.value);
    } catch (error) {
      await end();
      throw error;
    }
    await allWritable(execution);
    // Otherwise, a generator that never ends could not be cancelled.
    if (share.isSpent && anyOpen(execution)) await share.renewed();
    if (!anyOpen(execution)) {
      await end();
      break;
    }
  }
  execution.outputsReady();
}

function iteratorOf(value: unknown): AsyncIterator<unknown> | Iterator<unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const iterable = value as Partial<AsyncIterable<unknown> & Iterable<unknown>>;
  return iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]?.();
}

async function allWritable(execution: CallbackExecution): Promise<void> {
  for (let i = 0; i < execution.requests.length; i++) await execution.writable(i);
}

function anyOpen(execution: CallbackExecution): boolean {
  return execution.requests.some((_, i) => execution.isOpen(i));
}

function finishAll(execution: CallbackExecution): void {
  for (let i = 0; i < execution.requests.length; i++) execution.finish(i);
}

function senderFor(callable: Callable, execution: CallbackExecution, index: number): ResponseSender<[]> {
  return {
    get isOpen() {
      return execution.isOpen(index);
    },
    async send(result, { final = false } = {}) {
      try {
        sendResult(callable, execution, index, result, final);
      } catch (error) {
        // Thrown here, the error could go unnoticed: callers need not await the sending of a response.
        execution.sendError(index, TritonError.from(error), true);
      }
      await execution.writable(index);
    },
    close: () => execution.finish(index),
  };
}

/** Sends one result; nothing for `undefined`, an error for an `Error`. */
function sendResult(
  { checker }: Callable,
  execution: CallbackExecution,
  index: number,
  result: unknown,
  final = false,
): void {
  if (result === undefined || !execution.isOpen(index)) return;
  if (result === RESCHEDULE) {
    execution.reschedule(index);
    return;
  }
  if (result instanceof Error) {
    execution.sendError(index, TritonError.from(result), final);
    return;
  }
  // A response of a decoupled model may have any number of rows.
  const { requestedOutputs } = execution.requests[index]!;
  execution.send(index, checker.fromCallback(result, undefined, requestedOutputs), final);
}
