import { errorFor, type Isolation, TritonError } from "@tritonjs/protocol";
import { divideOutputs, joinInputsIn } from "../batch/batch-tensors.js";
import { type InstanceInfo, RESCHEDULE } from "../callback/infer-func.js";
import type { Execution, ExecutionResult, Executor } from "../instance/backend.js";
import type { ModuleHost } from "../instance/import-callable.js";
import { notServed } from "../instance/js-model.js";
import { requestedBy, totalRows } from "../instance/run-callable.js";
import { type Log, type LogSubject, runningFields } from "../observe/log.js";
import type { OutputChecker } from "../request/inference-response.js";
import { type ExecutableRequest, requestInfo } from "../request-info.js";
import type { Clock, Timer } from "../system/clock.js";
import type { Allocate } from "../tensor-rows.js";
import {
  BatchMemory,
  type Channel,
  type ChannelListener,
  type FromWorker,
  packError,
  packTensors,
  type ToWorker,
  unpackError,
  unpackOutputs,
  type WireInputs,
  type WireResult,
  type WorkerInit,
} from "./messages.js";
import { CallsOfWorker } from "./model-calls.js";
import {
  isolationOf,
  type OpenedWorker,
  openWorker,
  type WorkerPlacement,
  type WorkerProgram,
} from "./open-worker.js";
import { Restarts } from "./restarts.js";

/** Milliseconds that a model may take to close before its worker is killed. */
const CLOSE_WITHIN_MS = 30_000;

/**
 * Runs batches in a worker: a thread or a child process. A worker that dies fails only the batch that it ran. It
 * restarts after a pause that doubles with each failure, and then runs the batch that it held ahead.
 */
export class WorkerExecutor implements Executor {
  readonly isolation: Isolation;
  readonly mustFinish: boolean;
  readonly takesAhead: boolean;
  readonly releasesInputs = true;
  readonly checkInput: Executor["checkInput"];
  /** True if the worker has to know of cancelled requests. */
  readonly #watches: boolean;
  details: Readonly<Record<string, string>> = {};
  memoryBytes: number | undefined;
  onHealth: Executor["onHealth"];
  readonly #program: WorkerProgram;
  /** Undefined for a program that keeps its inputs, and for a process, which gets copies. */
  readonly #memory: BatchMemory | undefined;
  readonly #instance: WorkerInstance;
  #channel: Channel | undefined;
  #ready = false;
  #closes = false;
  #onGone: (() => void) | undefined;
  readonly #batches = new BatchesOfWorker(() =>
    this.#limit("its batch ran for more than", this.#instance.hosting?.executionTimeoutMs),
  );
  #endedFor: TritonError | undefined;
  readonly restarts: Restarts;
  #nextBatch = 0;
  readonly #streams = new OpenExecutions();
  readonly #calls = new CallsOfWorker(
    (message, transfer) => this.#channel?.post(message, transfer),
    (batch) => (this.#batches.find(batch)?.execution ?? this.#streams.get(batch))?.models,
  );

  constructor(program: WorkerProgram, instance: WorkerInstance) {
    this.#program = program;
    this.#instance = instance;
    this.checkInput = program.checkInput;
    this.isolation = isolationOf(instance);
    this.mustFinish = this.isolation === "worker" && !program.interruptible;
    this.#watches = program.tensorsOnly !== true || instance.hosting?.abandonedTimeoutMs !== undefined;
    this.takesAhead = !this.#watches;
    this.#memory = program.returnsInputs && this.isolation === "worker" ? new BatchMemory() : undefined;
    this.restarts = new Restarts(
      instance.clock,
      () => this.start(),
      (healthy, reason) => {
        if (reason !== undefined) this.#batches.fail(reason);
        this.onHealth?.(healthy, reason);
      },
      instance.info,
      instance.log,
    );
  }

  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const { info, hosting } = this.#instance;
      const init: WorkerInit = {
        entry: this.#program.entry.href,
        data: this.#program.data,
        info,
        reportMemory: hosting?.recycle?.aboveMemoryMb !== undefined,
        logsConsole: this.#instance.log?.hasDestination === true,
      };
      this.#ready = false;
      let failure: TritonError | undefined;
      const listener: ChannelListener = {
        message: (message) => {
          if (message.type === "ready") {
            this.#ready = true;
            this.#closes = message.closes;
            limit?.cancel();
            // From now on the requests in flight keep the process alive, and an idle worker does not.
            channel.unref();
            this.details = { ...channel.details, ...message.details };
            for (const ahead of this.#batches.all) this.#post(ahead);
            this.#batches.begin();
            resolve();
          } else if (message.type === "failed") {
            failure = unpackError(message.error);
            // The module may have left a timer or a socket open, which would keep the worker alive.
            if (!this.mustFinish) channel.kill();
          } else if (message.type !== "opened" && message.type !== "free") {
            this.#take(message);
          }
        },
        gone: (how, fault) => {
          limit?.cancel();
          this.#channel = undefined;
          const died = failure ?? this.#describeDeath(fault, how);
          this.#batches.takeLost()?.reject(died);
          if (this.restarts.over) this.#batches.fail(died);
          if (this.#ready) this.restarts.crashed(died);
          else reject(died);
          this.#streams.fail(died);
          this.#calls.endAll();
          this.#onGone?.();
        },
      };
      const channel =
        this.#instance.opened?.take(listener) ?? openWorker(this.#program, this.#instance, listener);
      this.#channel = channel;
      const limit = this.#limit("its model did not load within", this.#program.loadTimeoutMs);
      channel.post({ type: "load", init }, []);
    });
  }

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    return new Promise((resolve, reject) => {
      const { requests } = execution;
      const batch = this.#nextBatch++;
      const work: BatchOfWorker = { batch, execution, resolve, reject };
      this.#batches.add(work);
      if (execution.decoupled) this.#streams.add(batch, execution);
      this.#post(work);
      if (!this.#watches) return;
      let open = requests.length;
      const givenUp = (index: number) => {
        this.#channel?.post({ type: "cancel", batch, index }, []);
        this.#streams.forgetWhenOver(batch);
        if (--open === 0 && this.#batches.running === work) this.#abandoned();
      };
      execution.watch({ givenUp });
      // Null requests, and those that were cancelled on the way here.
      for (const index of requests.keys()) if (!execution.isOpen(index)) givenUp(index);
    });
  }

  /** Sends a batch to the worker. The batch fails if it cannot be joined or cloned. */
  #post(work: BatchOfWorker): void {
    const { batch, execution } = work;
    const transfer: ArrayBuffer[] = [];
    try {
      const message = executeMessage(batch, execution, this.#program, transfer, this.#memory);
      this.#channel?.post(message, transfer);
    } catch (error) {
      this.#batches.remove(work);
      work.reject(error);
    }
  }

  drained(): Promise<void> {
    return this.#streams.whenEmpty();
  }

  async stop(): Promise<void> {
    this.restarts.stop();
    const channel = this.#channel;
    if (channel === undefined) {
      await this.#instance.opened?.close();
      this.#batches.fail(errorFor("MODEL_STOPPED", `${this.#name} was stopped`));
      return;
    }
    const gone = new Promise<void>((resolve) => {
      const before = this.#onGone;
      this.#onGone = () => {
        before?.();
        resolve();
      };
    });
    channel.ref();
    if (this.mustFinish) channel.finish();
    else if (this.#ready && this.#batches.running === undefined)
      channel.end(this.#closes ? CLOSE_WITHIN_MS : undefined);
    else channel.kill();
    await gone;
  }

  #take(message: Exclude<FromWorker, { type: "ready" | "failed" | "opened" | "free" }>): void {
    const { info, warn, host, onReport } = this.#instance;
    switch (message.type) {
      case "warning":
        warn(`model '${info.modelName}': ${message.message}`);
        break;
      case "report":
        onReport?.(message.value);
        break;
      case "log":
        host?.log(message.line, this.#aboutRunning);
        break;
      case "metrics":
        host?.changeMetrics(message.changes);
        break;
      case "ask":
        this.#ask(message);
        break;
      case "memory":
        this.memoryBytes = message.bytes;
        break;
      case "response": {
        this.#respond(message);
        break;
      }
      case "call":
      case "next":
      case "end":
        this.#calls.take(message);
        break;
      default:
        this.#finish(message);
    }
  }

  /** Delivers a response, and tells the worker when its consumer can take another. */
  #respond(message: Extract<FromWorker, { type: "response" }>): void {
    const { batch, index, final, outputs, error, again } = message;
    const execution = this.#streams.get(batch);
    if (execution === undefined) return;
    if (error !== undefined) execution.sendError(index, unpackError(error), final);
    else if (outputs !== undefined) execution.send(index, unpackOutputs(outputs), final);
    else if (again) execution.reschedule(index);
    else execution.finish(index);
    if (final) {
      this.#streams.forgetWhenOver(batch);
      return;
    }
    const taken = () => this.#channel?.post({ type: "taken", batch, index }, []);
    const wait = execution.writable(index);
    if (wait === undefined) taken();
    else void wait.then(taken);
  }

  /** Passes a request of the model to the server, and its answer to the worker that asked. */
  #ask({ number, ask }: Extract<FromWorker, { type: "ask" }>): void {
    const channel = this.#channel;
    const { host, info } = this.#instance;
    const asked = host?.control(ask) ?? Promise.reject(notServed(info.modelName));
    asked.then(
      (value) => channel?.post({ type: "answered", number, value: value === true }, []),
      (thrown) => channel?.post({ type: "answered", number, error: packError(thrown) }, []),
    );
  }

  #finish(answer: WorkerAnswer): void {
    if (answer.type !== "returned" && answer.lent !== undefined) this.#memory?.release(answer.lent);
    const done = this.#batches.takeDone();
    if (done === undefined) return;
    const { execution } = done;
    execution.outputsReady();
    if (this.restarts.failed) this.restarts.worked();
    try {
      done.resolve(readAnswer(answer, execution, this.#instance.checker));
    } catch (error) {
      done.reject(TritonError.from(error));
    }
  }

  /** Limits the time that the running batch may continue after all its requests were cancelled. */
  #abandoned(): void {
    const limitMs = this.#instance.hosting?.abandonedTimeoutMs;
    if (limitMs === undefined) return;
    this.#batches.limitBy(this.#limit("all its requests were cancelled, and it kept running for", limitMs));
  }

  #limit(what: string, limitMs: number | undefined): Timer | undefined {
    if (limitMs === undefined || this.mustFinish) return undefined;
    return this.#instance.clock.setTimer(limitMs, () => {
      this.#endedFor = errorFor("TIME_LIMIT_EXCEEDED", `${this.#name} was ended: ${what} ${limitMs} ms`);
      this.#channel?.kill();
    });
  }

  get #aboutRunning(): LogSubject {
    const running = this.#batches.running?.execution;
    return runningFields(new Set([...this.#streams.executions, ...(running === undefined ? [] : [running])]));
  }

  get #name(): string {
    const { instanceName, modelName } = this.#instance.info;
    return `instance '${instanceName}' of model '${modelName}'`;
  }

  #describeDeath(fault: unknown, how: string): TritonError {
    const ended = this.#endedFor;
    this.#endedFor = undefined;
    if (ended !== undefined) return ended;
    const why = fault === undefined ? how : TritonError.from(fault).message;
    return errorFor("WORKER_CRASHED", `${this.#name} crashed: ${why}`, { cause: fault });
  }
}

/** The instance that a worker runs: where, with which model, and whom it tells. */
interface WorkerInstance extends WorkerPlacement {
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  /** The server's log; undefined for a worker without a server. */
  readonly log?: Log;
  readonly host?: ModuleHost;
  readonly onReport?: ((value: unknown) => void) | undefined;
  /** A worker that already has the model open, for the first start. */
  readonly opened?: OpenedWorker | undefined;
}

function executeMessage(
  batch: number,
  execution: Execution,
  program: WorkerProgram,
  transfer: ArrayBuffer[],
  memory?: BatchMemory,
): Extract<ToWorker, { type: "execute" }> {
  const { requests } = execution;
  const allocate: Allocate | undefined =
    memory &&
    ((byteSize) => {
      const bytes = memory.allocate(byteSize);
      transfer.push(bytes.buffer);
      return bytes;
    });
  const inputs = packInputs(execution, program.joins ?? false, transfer, allocate);
  execution.inputsReady();
  const rows = requests.map((one) => one.rows);
  const known = program.tensorsOnly === true ? {} : { requests: requests.map(requestInfo) };
  const requestedOutputs = requestedBy(requests);
  return {
    type: "execute",
    batch,
    ...inputs,
    rows,
    requestedOutputs,
    ...known,
    lendsInputs: memory !== undefined,
  };
}

function packInputs(
  execution: Execution,
  joins: boolean,
  transfer: ArrayBuffer[],
  allocate: Allocate | undefined,
): WireInputs {
  const { requests, mergedInputs, layout } = execution;
  if (requests.length === 1 && mergedInputs === undefined && layout === undefined) {
    return { inputs: packTensors(requests[0]!.inputs, transfer, false, allocate) };
  }
  if (layout !== undefined && joins) {
    const parts = requests.map(({ inputs }) => packTensors(inputs, transfer, false));
    return { inputs: [], parts, padding: layout.padding };
  }
  const joined = joinInputsIn(execution, allocate && (() => allocate));
  const inputs = packTensors(joined, transfer, requests.length > 1 && layout === undefined, allocate);
  return layout === undefined ? { inputs } : { inputs, indivisible: true };
}

export interface BatchOfWorker {
  readonly batch: number;
  readonly execution: Execution;
  resolve(results: readonly ExecutionResult[] | undefined): void;
  reject(error: unknown): void;
}

/**
 * The batches of a worker: the running one, and those that it starts afterwards, in order. It also answers in this
 * order.
 */
export class BatchesOfWorker {
  readonly #batches: BatchOfWorker[] = [];
  #limit: Timer | undefined;
  readonly #startLimit: () => Timer | undefined;

  constructor(startLimit: () => Timer | undefined) {
    this.#startLimit = startLimit;
  }

  get running(): BatchOfWorker | undefined {
    return this.#batches[0];
  }

  get all(): readonly BatchOfWorker[] {
    return [...this.#batches];
  }

  find(batch: number): BatchOfWorker | undefined {
    return this.#batches.find((one) => one.batch === batch);
  }

  add(batch: BatchOfWorker): void {
    this.#batches.push(batch);
    if (this.#batches.length === 1) this.limitBy(this.#startLimit());
  }

  /** Removes the batch that the worker has finished; the worker has started the next one. */
  takeDone(): BatchOfWorker | undefined {
    const done = this.takeLost();
    this.begin();
    return done;
  }

  takeLost(): BatchOfWorker | undefined {
    this.limitBy(undefined);
    return this.#batches.shift();
  }

  remove(batch: BatchOfWorker): void {
    if (batch === this.running) this.takeDone();
    else if (this.#batches.includes(batch)) this.#batches.splice(this.#batches.indexOf(batch), 1);
  }

  /** Records that the worker starts the first of the batches held ahead. */
  begin(): void {
    if (this.running === undefined) return;
    this.running.execution.postponed?.();
    this.limitBy(this.#startLimit());
  }

  limitBy(limit: Timer | undefined): void {
    this.#limit?.cancel();
    this.#limit = limit;
  }

  fail(error: unknown): void {
    this.limitBy(undefined);
    for (const { reject } of this.#batches.splice(0)) reject(error);
  }
}

type WorkerAnswer = Extract<FromWorker, { type: "merged" | "separate" | "error" | "returned" }>;

function readAnswer(
  answer: WorkerAnswer,
  execution: Execution,
  checker: OutputChecker,
): readonly ExecutionResult[] | undefined {
  const { requests } = execution;
  switch (answer.type) {
    case "error":
      throw unpackError(answer.error);
    case "returned":
      return undefined;
    case "separate":
      return answer.results.map((one, i) => readSeparate(one, requests[i]!, checker));
    case "merged": {
      const made = unpackOutputs(answer.outputs);
      const outputs = checker.check(made, totalRows(requests), requestedBy(requests), true);
      return divideOutputs(execution, outputs);
    }
  }
}

function readSeparate(
  result: WireResult,
  request: ExecutableRequest,
  checker: OutputChecker,
): ExecutionResult {
  if (result === "again") return RESCHEDULE;
  if ("code" in result) return unpackError(result);
  try {
    return checker.check(unpackOutputs(result), request.rows, request.requestedOutputs);
  } catch (error) {
    return TritonError.from(error);
  }
}

export class OpenExecutions {
  readonly #executions = new Map<number, Execution>();
  #emptyWaiters: (() => void)[] = [];

  add(batch: number, execution: Execution): void {
    this.#executions.set(batch, execution);
  }

  /** Batches with unanswered requests, oldest first. */
  get executions(): Iterable<Execution> {
    return this.#executions.values();
  }

  get(batch: number): Execution | undefined {
    return this.#executions.get(batch);
  }

  forget(batch: number): void {
    this.#executions.delete(batch);
    if (this.#executions.size === 0) for (const resolve of this.#emptyWaiters.splice(0)) resolve();
  }

  forgetWhenOver(batch: number): void {
    const execution = this.#executions.get(batch);
    if (execution?.requests.every((_, i) => !execution.isOpen(i))) this.forget(batch);
  }

  async whenEmpty(): Promise<void> {
    if (this.#executions.size > 0) await new Promise<void>((resolve) => this.#emptyWaiters.push(resolve));
  }

  fail(error: TritonError): void {
    for (const [batch, execution] of this.#executions) {
      for (let i = 0; i < execution.requests.length; i++) execution.sendError(i, error, true);
      this.forget(batch);
    }
  }
}
