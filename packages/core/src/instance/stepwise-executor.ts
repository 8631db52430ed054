import { errorFor, type Shape, TritonError } from "@tritonjs/protocol";
import { process, untilNextTurn } from "#host";
import type { Tensors } from "../batch/batch-tensors.js";
import { type AnyStepwiseModel, type InstanceInfo, isDone } from "../callback/infer-func.js";
import { divideParameters, OutputChecker } from "../request/inference-response.js";
import type { ExecutableRequest } from "../request-info.js";
import type { CallbackExecution, Execution, ExecutionResult, ExecutionWatcher, Executor } from "./backend.js";
import { CallbackContext, toCallbackArrays } from "./callback-context.js";

/**
 * Lets requests join those that an instance already runs. It takes as many batches at a time as the model's batch has
 * rows, and passes them on one by one. A batch is done when all its requests are over.
 *
 * The inner executor runs the loop, on this thread or elsewhere: its `execute` returns as soon as the loop has the
 * requests.
 */
export class StepwiseExecutor implements Executor {
  onRoom: Executor["onRoom"];
  readonly #inner: Executor;
  readonly #capacity: () => number;
  #handingOver: Promise<unknown> = Promise.resolve();

  /** @param capacity number of requests at a time, which may change */
  constructor(inner: Executor, capacity: () => number) {
    this.#inner = inner;
    this.#capacity = capacity;
  }

  get capacity(): number {
    return this.#capacity();
  }

  get restarts(): Executor["restarts"] {
    return this.#inner.restarts;
  }

  get isolation(): Executor["isolation"] {
    return this.#inner.isolation;
  }

  get memoryBytes(): number | undefined {
    return this.#inner.memoryBytes;
  }

  get details(): Executor["details"] {
    return this.#inner.details;
  }

  get mustFinish(): boolean {
    return this.#inner.mustFinish;
  }

  set onHealth(listener: Executor["onHealth"]) {
    this.#inner.onHealth = listener;
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  stop(): Promise<void> {
    return this.#inner.stop();
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    let over!: () => void;
    const answered = new Promise<void>((resolve) => {
      over = resolve;
    });
    const watched = new WatchedExecution(execution, over);
    const handedOver = this.#handingOver.then(() => this.#inner.execute(watched));
    this.#handingOver = handedOver.catch(() => {});
    await handedOver;
    watched.answered();
    await answered;
    return undefined;
  }
}

/**
 * An execution through which some or all requests of another one are answered.
 *
 * @param indices positions of its requests in the whole, in the order of the part; the same positions if undefined
 */
export class ExecutionView implements CallbackExecution {
  constructor(
    protected readonly whole: CallbackExecution,
    readonly requests: readonly ExecutableRequest[] = whole.requests,
    private readonly indices?: readonly number[],
  ) {}

  get signal(): AbortSignal {
    return this.whole.signal;
  }

  get clock(): Execution["clock"] {
    return this.whole.clock;
  }

  get models(): Execution["models"] {
    return this.whole.models;
  }

  get layout(): Execution["layout"] {
    return this.whole.layout;
  }

  get decoupled(): boolean {
    return this.whole.decoupled;
  }

  inputsReady(): void {
    this.whole.inputsReady();
  }

  outputsReady(): void {
    this.whole.outputsReady();
  }

  isOpen(index: number): boolean {
    return this.whole.isOpen(this.#at(index));
  }

  writable(index: number): Promise<void> | undefined {
    return this.whole.writable(this.#at(index));
  }

  send(index: number, outputs: Tensors, final?: boolean): void {
    this.whole.send(this.#at(index), outputs, final);
    this.answered();
  }

  sendError(index: number, error: TritonError, final?: boolean): void {
    this.whole.sendError(this.#at(index), error, final);
    this.answered();
  }

  finish(index: number): void {
    this.whole.finish(this.#at(index));
    this.answered();
  }

  reschedule(index: number): void {
    this.whole.reschedule(this.#at(index));
    this.answered();
  }

  /** Called after each answer. */
  protected answered(): void {}

  #at(index: number): number {
    return this.indices === undefined ? index : this.indices[index]!;
  }
}

class WatchedExecution extends ExecutionView implements Execution {
  readonly #over: () => void;
  #watcher: ExecutionWatcher | undefined;

  constructor(execution: Execution, over: () => void) {
    super(execution);
    this.#over = over;
    execution.watch({
      givenUp: (index) => {
        this.#watcher?.givenUp(index);
        this.answered();
      },
    });
  }

  override answered(): void {
    if (this.requests.every((_, i) => !this.isOpen(i))) this.#over();
  }

  watch(watcher: ExecutionWatcher): void {
    this.#watcher = watcher;
  }
}

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

  add(execution: CallbackExecution): void {
    for (let i = 0; i < execution.requests.length; i++) void this.#start(execution, i);
  }

  async #start(execution: CallbackExecution, index: number): Promise<void> {
    const { model, info } = this;
    const request = execution.requests[index]!;
    let state: unknown;
    try {
      if (request.rows > 1) {
        throw errorFor(
          "BATCH_TOO_LARGE",
          `inference request to model '${info.modelName}': expected one row, because requests of this model run step by step`,
        );
      }
      const inputs = toCallbackArrays(
        reshaped(request.inputs, (shape) => shape.slice(request.batchSize > 0 ? 1 : 0)),
        info.modelName,
      );
      execution.inputsReady();
      state = await request.runInContext(() => model.start(inputs, new CallbackContext(info, execution)));
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
      await untilNextTurn();
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
    throw errorFor(
      "INVALID_OUTPUT",
      `step of model '${this.info.modelName}': expected a list of ${count} results, one for each request, ` +
        `got ${got}`,
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
