import { requestInfo } from "../../callable/infer-context.js";
import type { Timer } from "../../clock/clock.js";
import type { Isolation } from "../../config/instance-hosting.js";
import { TritonError } from "../../errors/triton-error.js";
import type { Execution, ExecutionResult, Executor } from "../executor.js";
import { CallsOfWorker } from "./calls-of-worker.js";
import type { Channel } from "./channel.js";
import { type HostMessage, isHostMessage, tellHost } from "./host-messages.js";
import { type FromWorker, unpackError, type WorkerInit } from "./messages.js";
import { OpenStreams } from "./open-streams.js";
import { packInputs } from "./pack-inputs.js";
import { openProcess } from "./process-channel.js";
import { readAnswer, type WorkerAnswer } from "./read-answer.js";
import { Restarts } from "./restarts.js";
import { openThread } from "./thread-channel.js";
import type { WorkerContext, WorkerProgram } from "./worker-program.js";

/** How long a model may take to close before it is ended. */
const CLOSE_WITHIN_MS = 30_000;

interface Running {
  readonly batch: number;
  readonly execution: Execution;
  /** Ends the worker when the batch takes too long. */
  limit: Timer | undefined;
  resolve(results: readonly ExecutionResult[] | undefined): void;
  reject(error: unknown): void;
}

/**
 * Runs batches in a worker: a thread or a child process. A worker that dies fails the batch it had and nothing else,
 * and is started again after a pause that doubles with each failure.
 */
export class WorkerExecutor implements Executor {
  readonly isolation: Isolation;
  readonly mustFinish: boolean;
  details: Readonly<Record<string, string>> = {};
  memoryBytes: number | undefined;
  onHealth: Executor["onHealth"];
  readonly #program: WorkerProgram;
  readonly #context: WorkerContext;
  #channel: Channel | undefined;
  #ready = false;
  #closes = false;
  #onGone: (() => void) | undefined;
  #running: Running | undefined;
  #endedFor: TritonError | undefined;
  readonly #restarts: Restarts;
  #nextBatch = 0;
  readonly #streams = new OpenStreams();
  readonly #calls = new CallsOfWorker(
    (message, transfer) => this.#channel?.post(message, transfer),
    (batch) => (this.#running?.batch === batch ? this.#running.execution : this.#streams.get(batch))?.models,
  );

  constructor(program: WorkerProgram, context: WorkerContext) {
    this.#program = program;
    this.#context = context;
    this.isolation = context.hosting?.isolation === "process" ? "process" : "worker";
    this.mustFinish = this.isolation === "worker" && !program.interruptible;
    this.#restarts = new Restarts(
      context.clock,
      () => this.start(),
      (healthy, reason) => this.onHealth?.(healthy, reason),
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
      };
      this.#ready = false;
      let failure: TritonError | undefined;
      const open = this.isolation === "process" ? openProcess : openThread;
      const channel = open(
        init,
        { heapLimitMb: hosting?.heapLimitMb, nice },
        {
          message: (message) => {
            if (message.type === "ready") {
              this.#ready = true;
              this.#closes = message.closes;
              limit?.cancel();
              this.details = { ...channel.details, ...message.details };
              resolve();
            } else if (isHostMessage(message)) {
              tellHost(message, this.#context);
            } else if (message.type === "failed") {
              failure = unpackError(message.error);
              // The module may have left a timer or a socket open, which would keep the worker alive.
              if (!this.mustFinish) channel.kill();
            } else {
              this.#take(message);
            }
          },
          gone: (how, fault) => {
            limit?.cancel();
            this.#channel = undefined;
            const died = failure ?? this.#describeDeath(fault, how);
            if (this.#ready) this.#restarts.crashed(died);
            else reject(died);
            this.#running?.reject(died);
            this.#streams.fail(died);
            this.#calls.endAll();
            this.#onGone?.();
          },
        },
      );
      this.#channel = channel;
      const limit = this.#limit("its model had not loaded after", this.#program.loadTimeoutMs);
    });
  }

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    return new Promise((resolve, reject) => {
      const { requests } = execution;
      const batch = this.#nextBatch++;
      const transfer: ArrayBuffer[] = [];
      const inputs = packInputs(execution, this.#program.joins ?? false, transfer);
      if (execution.decoupled) this.#streams.add(batch, execution);
      execution.inputsReady();
      const done = () => {
        running.limit?.cancel();
        this.#running = undefined;
      };
      const running: Running = {
        batch,
        execution,
        limit: this.#limit("ran longer than", this.#context.hosting?.executionTimeoutMs),
        resolve: (results) => {
          done();
          resolve(results);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      };
      this.#running = running;
      this.#channel?.post(
        {
          type: "execute",
          batch,
          ...inputs,
          requests: requests.map((one) => ({ ...requestInfo(one), rows: one.rows })),
        },
        transfer,
      );
      let open = requests.length;
      requests.forEach((request, index) => {
        request.onCancel = () => {
          this.#channel?.post({ type: "cancel", batch, index }, []);
          this.#streams.forgetWhenOver(batch);
          if (--open === 0 && this.#running === running) this.#abandoned(running);
        };
        // Null requests, and those that were given up on the way here.
        if (!execution.isOpen(index)) request.onCancel();
      });
    });
  }

  drained(): Promise<void> {
    return this.#streams.whenEmpty();
  }

  async stop(): Promise<void> {
    this.#restarts.stop();
    const channel = this.#channel;
    if (channel === undefined) return;
    const gone = new Promise<void>((resolve) => {
      const before = this.#onGone;
      this.#onGone = () => {
        before?.();
        resolve();
      };
    });
    if (this.mustFinish) channel.post({ type: "stop" }, []);
    else if (this.#ready && this.#running === undefined)
      channel.end(this.#closes ? CLOSE_WITHIN_MS : undefined);
    else channel.kill();
    await gone;
  }

  #take(message: Exclude<FromWorker, HostMessage | { type: "ready" | "failed" }>): void {
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
    const running = this.#running;
    if (running === undefined) return;
    const { requests, decoupled } = running.execution;
    if (!decoupled) for (const request of requests) request.onCancel = undefined;
    running.execution.outputsReady();
    this.#restarts.worked();
    try {
      running.resolve(readAnswer(answer, running.execution, this.#context.checker));
    } catch (error) {
      running.reject(TritonError.from(error));
    }
  }

  /** Nobody waits for the batch any more: it may run on for a while. */
  #abandoned(running: Running): void {
    const limitMs = this.#context.hosting?.abandonedTimeoutMs;
    if (limitMs === undefined) return;
    running.limit?.cancel();
    running.limit = this.#limit("its requests were given up, and it ran on for", limitMs);
  }

  #limit(what: string, limitMs: number | undefined): Timer | undefined {
    if (limitMs === undefined || this.mustFinish) return undefined;
    return this.#context.clock.setTimer(limitMs, () => {
      this.#endedFor = new TritonError("UNAVAILABLE", `${this.#name} was ended: ${what} ${limitMs} ms`);
      this.#channel?.kill();
    });
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
    return new TritonError("INTERNAL", `${this.#name} crashed: ${why}`, { cause: fault });
  }
}
