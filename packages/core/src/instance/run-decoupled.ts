import { mergeInputs } from "../batch/merge-inputs.js";
import { splitOutputs } from "../batch/split-outputs.js";
import type { PlainInferFunc, ResponseSender, TensorFunc } from "../callable/infer-func.js";
import { styleOf } from "../callable/infer-func.js";
import { RESCHEDULE } from "../callable/reschedule.js";
import { TritonError } from "../errors/triton-error.js";
import { contextOf, toArrays, toInferRequest } from "./callback-arguments.js";
import type { Execution } from "./executor.js";
import { type Callable, totalRows } from "./run-callable.js";

/**
 * Runs a callback of a decoupled model, whose requests are answered by any number of responses: those that a
 * generator yields, until it ends, or those that a plain callback sends through each request's `responseSender`.
 *
 * A generator is asked for the next responses when every consumer keeps up, and is ended early (`return()`) when
 * all requests of the batch have been given up.
 */
export async function runDecoupled(callable: Callable, execution: Execution): Promise<void> {
  switch (styleOf(callable.fn)) {
    case "batch":
      return runBatch(callable, execution);
    case "sample":
      return runSample(callable, execution);
    case "requests":
      return runRequests(callable, execution);
  }
}

async function runBatch({ fn, info, checker }: Callable, execution: Execution): Promise<void> {
  const { requests } = execution;
  const inputs = execution.mergedInputs ?? mergeInputs(requests.map((request) => request.inputs));
  const rows = requests.map((request) => request.rows);
  execution.inputsReady();
  const value = (fn as unknown as TensorFunc<[], []>)(toArrays(inputs), contextOf(info, execution));
  await forEachStep(value, execution, (outputs) => {
    const split = splitOutputs(checker.fromCallback(outputs, totalRows(requests), []), rows);
    for (let i = 0; i < requests.length; i++) execution.send(i, split[i]!);
  });
  finishAll(execution);
}

async function runSample({ fn, info, checker }: Callable, execution: Execution): Promise<void> {
  const request = execution.requests[0]!;
  execution.inputsReady();
  const value = (fn as unknown as TensorFunc<[], []>)(toArrays(request.inputs), contextOf(info, execution));
  await forEachStep(value, execution, (outputs) => {
    execution.send(0, checker.fromCallback(outputs, request.rows, request.requestedOutputs));
  });
  finishAll(execution);
}

async function runRequests(callable: Callable, execution: Execution): Promise<void> {
  const { fn, info } = callable;
  const { requests } = execution;
  const seen = requests.map((request, i) => ({
    ...toInferRequest(request),
    responseSender: senderFor(callable, execution, i),
  }));
  execution.inputsReady();
  const value: unknown = (fn as unknown as PlainInferFunc<[], []>)(seen as never, contextOf(info, execution));
  if ((await value) === undefined) {
    // The senders answer, also after this.
    execution.outputsReady();
    return;
  }
  await forEachStep(value, execution, (results) => {
    if (!Array.isArray(results) || results.length !== requests.length) {
      const got = Array.isArray(results) ? `${results.length} results` : typeof results;
      throw new TritonError(
        "INTERNAL",
        `model '${info.modelName}' must yield lists with one entry for each of ${requests.length} requests, got ${got}`,
      );
    }
    for (let i = 0; i < requests.length; i++) sendResult(callable, execution, i, results[i]);
  });
  finishAll(execution);
}

/** Hands each step of a callback's answer to `send`: what it yields, or the one value that it returns. */
async function forEachStep(
  value: unknown,
  execution: Execution,
  send: (step: unknown) => void,
): Promise<void> {
  const settled = await value;
  const iterator = iteratorOf(settled);
  if (iterator === undefined) {
    execution.outputsReady();
    send(settled);
    return;
  }
  for (;;) {
    const { done, value: step } = await iterator.next();
    if (done) break;
    send(step);
    await allWritable(execution);
    if (!anyOpen(execution)) {
      await iterator.return?.();
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

async function allWritable(execution: Execution): Promise<void> {
  for (let i = 0; i < execution.requests.length; i++) await execution.writable(i);
}

function anyOpen(execution: Execution): boolean {
  return execution.requests.some((_, i) => execution.isOpen(i));
}

function finishAll(execution: Execution): void {
  for (let i = 0; i < execution.requests.length; i++) execution.finish(i);
}

function senderFor(callable: Callable, execution: Execution, index: number): ResponseSender<[]> {
  return {
    get isOpen() {
      return execution.isOpen(index);
    },
    async send(result, { final = false } = {}) {
      try {
        sendResult(callable, execution, index, result, final);
      } catch (error) {
        // Thrown here it could go unheard: nobody need wait for a response to be sent.
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
  execution: Execution,
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
