import { type Isolation, TritonError } from "@tritonjs/protocol";
import type { Timer } from "../../clock/clock.js";
import type { LogSubject } from "../../observe/log/logger.js";
import { runningFields } from "../../observe/log/request-fields.js";
import type { Execution, ExecutionResult, Executor } from "../executor.js";
import { BatchMemory } from "./batch-memory.js";
import type { Channel, ChannelListener } from "./channel.js";
import { executeMessage } from "./execute-message.js";
import { type HostMessage, isHostMessage, tellHost } from "./host-messages.js";
import { type FromWorker, unpackError, type WorkerInit } from "./messages.js";
import { OpenStreams } from "./open-streams.js";
import { isolationOf, openWorker } from "./open-worker.js";
import { readAnswer, type WorkerAnswer } from "./read-answer.js";
import { Restarts } from "./restarts.js";
import { BatchesOfWorker, type BatchOfWorker } from "./worker-batches.js";
import { CallsOfWorker } from "./worker-call-host.js";
import type { WorkerContext } from "./worker-context.js";
import type { WorkerProgram } from "./worker-program.js";

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
  /** True if the worker has to know of cancelled requests. */
  readonly #watches: boolean;
  details: Readonly<Record<string, string>> = {};
  memoryBytes: number | undefined;
  onHealth: Executor["onHealth"];
  readonly #program: WorkerProgram;
  /** Undefined for a program that keeps its inputs, and for a process, which gets copies. */
  readonly #memory: BatchMemory | undefined;
  readonly #context: WorkerContext;
  #channel: Channel | undefined;
  #ready = false;
  #closes = false;
  #onGone: (() => void) | undefined;
  readonly #batches = new BatchesOfWorker(() =>
    this.#limit("its batch ran for more than", this.#context.hosting?.executionTimeoutMs),
  );
  #endedFor: TritonError | undefined;
  readonly restarts: Restarts;
  #nextBatch = 0;
  readonly #streams = new OpenStreams();
  readonly #calls = new CallsOfWorker(
    (message, transfer) => this.#channel?.post(message, transfer),
    (batch) => (this.#batches.find(batch)?.execution ?? this.#streams.get(batch))?.models,
  );

  constructor(program: WorkerProgram, context: WorkerContext) {
    this.#program = program;
    this.#context = context;
    this.isolation = isolationOf(context);
    this.mustFinish = this.isolation === "worker" && !program.interruptible;
    this.#watches = program.tensorsOnly !== true || context.hosting?.abandonedTimeoutMs !== undefined;
    this.takesAhead = !this.#watches;
    this.#memory = program.returnsInputs && this.isolation === "worker" ? new BatchMemory() : undefined;
    this.restarts = new Restarts(
      context.clock,
      () => this.start(),
      (healthy, reason) => {
        if (reason !== undefined) this.#batches.fail(reason);
        this.onHealth?.(healthy, reason);
      },
      context.info,
      context.log,
    );
  }

  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const { info, hosting, nice } = this.#context;
      const init: WorkerInit = {
        entry: this.#program.entry.href,
        data: this.#program.data,
        info,
        reportMemory: hosting?.recycle?.aboveMemoryMb !== undefined,
        logsConsole: this.#context.log?.hasDestination === true,
      };
      this.#ready = false;
      let failure: TritonError | undefined;
      const listener: ChannelListener = {
        message: (message) => {
          if (message.type === "ready") {
            this.#ready = true;
            this.#closes = message.closes;
            limit?.cancel();
            this.details = { ...channel.details, ...message.details };
            for (const ahead of this.#batches.all) this.#post(ahead);
            this.#batches.begin();
            resolve();
          } else if (isHostMessage(message)) {
            tellHost(
              message,
              this.#context,
              (answer) => channel.post(answer, []),
              () => this.#aboutRunning,
            );
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
        this.#context.opened?.take(listener, nice) ?? openWorker(this.#program, this.#context, listener);
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
      await this.#context.opened?.close();
      this.#batches.fail(
        new TritonError("UNAVAILABLE", `${this.#name} was stopped`, { reason: "MODEL_STOPPED" }),
      );
      return;
    }
    const gone = new Promise<void>((resolve) => {
      const before = this.#onGone;
      this.#onGone = () => {
        before?.();
        resolve();
      };
    });
    if (this.mustFinish) channel.finish();
    else if (this.#ready && this.#batches.running === undefined)
      channel.end(this.#closes ? CLOSE_WITHIN_MS : undefined);
    else channel.kill();
    await gone;
  }

  #take(message: Exclude<FromWorker, HostMessage | { type: "ready" | "failed" | "opened" | "free" }>): void {
    switch (message.type) {
      case "memory":
        this.memoryBytes = message.bytes;
        break;
      case "response": {
        const { batch, index } = message;
        this.#streams.respond(message, () => this.#channel?.post({ type: "taken", batch, index }, []));
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

  #finish(answer: WorkerAnswer): void {
    if (answer.type !== "returned" && answer.lent !== undefined) this.#memory?.release(answer.lent);
    const done = this.#batches.takeDone();
    if (done === undefined) return;
    const { execution } = done;
    execution.outputsReady();
    this.restarts.worked();
    try {
      done.resolve(readAnswer(answer, execution, this.#context.checker));
    } catch (error) {
      done.reject(TritonError.from(error));
    }
  }

  /** Limits the time that the running batch may continue after all its requests were cancelled. */
  #abandoned(): void {
    const limitMs = this.#context.hosting?.abandonedTimeoutMs;
    if (limitMs === undefined) return;
    this.#batches.limitBy(this.#limit("all its requests were cancelled, and it kept running for", limitMs));
  }

  #limit(what: string, limitMs: number | undefined): Timer | undefined {
    if (limitMs === undefined || this.mustFinish) return undefined;
    return this.#context.clock.setTimer(limitMs, () => {
      this.#endedFor = new TritonError("UNAVAILABLE", `${this.#name} was ended: ${what} ${limitMs} ms`, {
        reason: "TIME_LIMIT_EXCEEDED",
      });
      this.#channel?.kill();
    });
  }

  /** Fields of a line that the model writes now. */
  get #aboutRunning(): LogSubject {
    const running = this.#batches.running?.execution;
    return runningFields(new Set([...this.#streams.executions, ...(running === undefined ? [] : [running])]));
  }

  get #name(): string {
    const { instanceName, modelName } = this.#context.info;
    return `instance '${instanceName}' of model '${modelName}'`;
  }

  #describeDeath(fault: unknown, how: string): TritonError {
    const ended = this.#endedFor;
    this.#endedFor = undefined;
    if (ended !== undefined) return ended;
    const why = fault === undefined ? how : TritonError.from(fault).message;
    return new TritonError("INTERNAL", `${this.#name} crashed: ${why}`, {
      reason: "WORKER_CRASHED",
      cause: fault,
    });
  }
}
