import { setImmediate } from "node:timers/promises";
import { type Shape, TritonError } from "@tritonjs/protocol";
import type { Tensors } from "../../batch/merge-inputs.js";
import type { InstanceInfo } from "../../callable/infer-context.js";
import { type AnyStepwiseModel, isDone } from "../../callable/stepwise.js";
import { OutputChecker } from "../../response/check-outputs.js";
import { divideParameters } from "../../response/response-parameters.js";

import { contextOf, toCallbackArrays } from "../callback-arguments.js";
import type { CallbackExecution } from "../executor.js";

/** A request in the loop. */
interface Active {
  readonly execution: CallbackExecution;
  readonly index: number;
  readonly state: unknown;
  /** True while its client has to catch up. */
  blocked: boolean;
}

/**
 * The loop of continuous batching: one step after the other for all active requests.
 *
 * ```
 * add --start--> active --step--> active --step--> ... done, failed or given up: leaves
 *                   ^ new requests                       blocked: left out until its client has caught up
 * ```
 *
 * The event loop has its turn between two steps, in which requests arrive and clients leave. While no request is
 * active, or all are blocked, the loop pauses.
 */
export class StepLoop {
  readonly #active = new Set<Active>();
  /** Checks the outputs of one request, which have no batch axis yet. */
  readonly #checker: OutputChecker;
  #running = false;

  constructor(
    private readonly model: AnyStepwiseModel,
    private readonly info: InstanceInfo,
  ) {
    this.#checker = new OutputChecker({ ...info.modelConfig, maxBatchSize: 0 });
  }

  /** Adds the requests of an execution, which are answered through it. */
  add(execution: CallbackExecution): void {
    for (let i = 0; i < execution.requests.length; i++) void this.#start(execution, i);
  }

  async #start(execution: CallbackExecution, index: number): Promise<void> {
    const { model, info } = this;
    const request = execution.requests[index]!;
    let state: unknown;
    try {
      if (request.rows > 1) {
        throw new TritonError(
          "INVALID_ARG",
          `inference request to model '${info.modelName}': expected one row, because requests of this model run step by step`,
          { reason: "BATCH_TOO_LARGE" },
        );
      }
      const inputs = toCallbackArrays(
        reshaped(request.inputs, (shape) => shape.slice(request.batchSize > 0 ? 1 : 0)),
        info.modelName,
      );
      execution.inputsReady();
      state = await request.runInContext(() => model.start(inputs, contextOf(info, execution)));
    } catch (error) {
      execution.sendError(index, TritonError.from(error), true);
      return;
    }
    this.#active.add({ execution, index, state, blocked: false });
    this.#wake();
  }

  #wake(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    for (;;) {
      await setImmediate();
      for (const one of this.#active) if (!one.execution.isOpen(one.index)) this.#leave(one);
      const ready = [...this.#active].filter(({ blocked }) => !blocked);
      if (ready.length === 0) break;
      await this.#step(ready);
    }
    this.#running = false;
  }

  async #step(ready: readonly Active[]): Promise<void> {
    let results: readonly unknown[];
    try {
      results = await this.model.step(
        ready.map(({ state }) => state),
        this.info,
      );
      this.#checkCount(results, ready.length);
    } catch (thrown) {
      const error = TritonError.from(thrown);
      for (const one of ready) this.#fail(one, error);
      return;
    }
    for (const [i, one] of ready.entries()) this.#deliver(one, results[i]);
  }

  #checkCount(results: unknown, count: number): void {
    if (Array.isArray(results) && results.length === count) return;
    const got = Array.isArray(results) ? `${results.length} results` : typeof results;
    throw new TritonError(
      "INTERNAL",
      `step of model '${this.info.modelName}': expected a list of ${count} results, one for each request, ` +
        `got ${got}`,
      { reason: "INVALID_OUTPUT" },
    );
  }

  #deliver(one: Active, result: unknown): void {
    const { execution, index } = one;
    if (!execution.isOpen(index)) {
      this.#leave(one);
      return;
    }
    try {
      if (result instanceof Error) throw result;
      const ends = isDone(result);
      const outputs = ends ? result.outputs : result;
      if (outputs !== undefined) this.#send(one, outputs, ends);
      else if (ends) execution.finish(index);
      if (ends) this.#leave(one);
    } catch (error) {
      this.#fail(one, TritonError.from(error));
    }
  }

  #send(one: Active, outputs: unknown, final: boolean): void {
    const { execution, index } = one;
    const { batchSize, requestedOutputs } = execution.requests[index]!;
    const tensors = this.#checker.fromCallback(outputs, undefined, requestedOutputs);
    if (final) execution.outputsReady();
    execution.send(index, batchSize > 0 ? reshaped(tensors, (shape) => [1, ...shape]) : tensors, final);
    const caughtUp = final ? undefined : execution.writable(index);
    if (caughtUp === undefined) return;
    one.blocked = true;
    void caughtUp.then(() => {
      one.blocked = false;
      this.#wake();
    });
  }

  #fail(one: Active, error: TritonError): void {
    one.execution.sendError(one.index, error, true);
    this.#leave(one);
  }

  #leave(one: Active): void {
    if (!this.#active.delete(one)) return;
    try {
      this.model.end?.(one.state);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}

function reshaped(tensors: Tensors, change: (shape: Shape) => Shape): Tensors {
  const changed = new Map(
    [...tensors].map(([name, tensor]) => [name, tensor.reshaped(change(tensor.shape))]),
  );
  return divideParameters(tensors, [changed])[0]!;
}
