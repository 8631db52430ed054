import { Worker } from "node:worker_threads";
import { mergeInputs } from "../../batch/merge-inputs.js";
import { splitOutputs } from "../../batch/split-outputs.js";
import { type InstanceInfo, requestInfo } from "../../callable/infer-context.js";
import { RESCHEDULE } from "../../callable/reschedule.js";
import type { Clock, Timer } from "../../clock/clock.js";
import { TritonError } from "../../errors/triton-error.js";
import type { OutputChecker } from "../../response/check-outputs.js";
import type { ExecutableRequest, Execution, ExecutionResult, Executor } from "../executor.js";
import { CallsOfWorker } from "./calls-of-worker.js";
import {
  type FromWorker,
  packTensors,
  type ToWorker,
  unpackError,
  unpackTensors,
  type WireResult,
  type WorkerInit,
} from "./messages.js";
import { OpenStreams } from "./open-streams.js";

/** What a worker runs, and how it may be ended. */
export interface WorkerProgram {
  /** Module that exports `load(data, info)`. */
  readonly entry: URL;
  /** Handed to `load`; must survive structured cloning. */
  readonly data: unknown;
  /** False for native code, which must not be cut off: ending the thread would abort the process. */
  readonly interruptible: boolean;
}

/** What a worker executor needs from outside. */
export interface WorkerContext {
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  /** Shows a warning that comes from the worker. */
  readonly warn: (message: string) => void;
}

const FIRST_RESTART_MS = 100;
const LAST_RESTART_MS = 30_000;

interface Running {
  readonly batch: number;
  readonly execution: Execution;
  resolve(results: readonly ExecutionResult[] | undefined): void;
  reject(error: TritonError): void;
}

/**
 * Runs batches in a worker thread. A worker that dies fails the batch it had and nothing else, and is started
 * again after a pause that doubles with each failure.
 */
export class WorkerExecutor implements Executor {
  readonly mustFinish: boolean;
  details: Readonly<Record<string, string>> = {};
  onHealth: Executor["onHealth"];
  readonly #program: WorkerProgram;
  readonly #context: WorkerContext;
  #worker: Worker | undefined;
  #running: Running | undefined;
  #stopped = false;
  #restart: Timer | undefined;
  #restartDelayMs = FIRST_RESTART_MS;
  #nextBatch = 0;
  readonly #streams = new OpenStreams();
  readonly #calls = new CallsOfWorker(
    (message, transfer) => this.#post(message, transfer),
    (batch) => (this.#running?.batch === batch ? this.#running.execution : this.#streams.get(batch))?.models,
  );

  constructor(program: WorkerProgram, context: WorkerContext) {
    this.#program = program;
    this.#context = context;
    this.mustFinish = !program.interruptible;
  }

  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      const init: WorkerInit = {
        entry: this.#program.entry.href,
        data: this.#program.data,
        info: this.#context.info,
      };
      const worker = new Worker(new URL("./worker-main.js", import.meta.url), {
        workerData: init,
        name: this.#context.info.instanceName,
      });
      this.#worker = worker;
      let ready = false;
      let fault: unknown;
      worker.on("message", (message: FromWorker) => {
        if (message.type === "ready") {
          ready = true;
          this.details = message.details;
          resolve();
        } else if (message.type === "warning") {
          this.#context.warn(`model '${this.#context.info.modelName}': ${message.message}`);
        } else if (message.type === "failed") {
          fault = unpackError(message.error);
          // The module may have left a timer or a socket open, which would keep the thread alive.
          if (this.#program.interruptible) void worker.terminate();
        } else if (message.type === "response") {
          const { batch, index } = message;
          this.#streams.respond(message, () => this.#post({ type: "taken", batch, index }));
        } else if (message.type === "call" || message.type === "next" || message.type === "end") {
          this.#calls.take(message);
        } else {
          this.#finish(message);
        }
      });
      worker.on("error", (error) => {
        fault = error;
      });
      worker.on("exit", (exitCode) => {
        if (this.#worker === worker) this.#worker = undefined;
        const died = this.#describeDeath(fault, exitCode);
        if (!ready) reject(died);
        else if (!this.#stopped) this.#crashed(died);
        this.#running?.reject(died);
        this.#streams.fail(died);
        this.#calls.endAll();
      });
    });
  }

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    return new Promise((resolve, reject) => {
      const { requests } = execution;
      const batch = this.#nextBatch++;
      if (execution.decoupled) this.#streams.add(batch, execution);
      const transfer: ArrayBuffer[] = [];
      const merged = mergeInputs(requests.map((request) => request.inputs));
      const inputs = packTensors(merged, transfer, requests.length > 1);
      execution.inputsReady();
      this.#running = {
        batch,
        execution,
        resolve: (results) => {
          this.#running = undefined;
          resolve(results);
        },
        reject: (error) => {
          this.#running = undefined;
          reject(error);
        },
      };
      this.#post(
        {
          type: "execute",
          batch,
          inputs,
          requests: requests.map((one) => ({ ...requestInfo(one), rows: one.rows })),
        },
        transfer,
      );
      requests.forEach((request, index) => {
        request.onCancel = () => {
          this.#post({ type: "cancel", batch, index });
          this.#streams.forgetWhenOver(batch);
        };
      });
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#restart?.cancel();
    const worker = this.#worker;
    if (worker === undefined) return;
    const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
    if (this.#program.interruptible) void worker.terminate();
    else this.#post({ type: "stop" });
    await exited;
  }

  #post(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    this.#worker?.postMessage(message, transfer);
  }

  #finish(message: Extract<FromWorker, { type: "merged" | "separate" | "error" | "returned" }>): void {
    const running = this.#running;
    if (running === undefined) return;
    const { requests } = running.execution;
    if (!running.execution.decoupled) for (const request of requests) request.onCancel = undefined;
    running.execution.outputsReady();
    this.#restartDelayMs = FIRST_RESTART_MS;
    if (message.type === "error") {
      running.reject(unpackError(message.error));
      return;
    }
    if (message.type === "returned") {
      running.resolve(undefined);
      return;
    }
    if (message.type === "separate") {
      running.resolve(message.results.map((one, i) => this.#separate(one, requests[i]!)));
      return;
    }
    try {
      const rows = requests.map((request) => request.rows);
      const total = rows.reduce((sum, n) => sum + n, 0);
      running.resolve(
        splitOutputs(this.#context.checker.check(unpackTensors(message.outputs), total, []), rows),
      );
    } catch (error) {
      running.reject(TritonError.from(error));
    }
  }

  #separate(result: WireResult, request: ExecutableRequest): ExecutionResult {
    if (result === "again") return RESCHEDULE;
    if ("code" in result) return unpackError(result);
    try {
      return this.#context.checker.check(unpackTensors(result), request.rows, request.requestedOutputs);
    } catch (error) {
      return TritonError.from(error);
    }
  }

  #describeDeath(fault: unknown, exitCode: number): TritonError {
    if (TritonError.is(fault)) return fault;
    const why = fault === undefined ? `exited with code ${exitCode}` : TritonError.from(fault).message;
    const { instanceName, modelName } = this.#context.info;
    return new TritonError("INTERNAL", `instance '${instanceName}' of model '${modelName}' crashed: ${why}`, {
      cause: fault,
    });
  }

  /** The first time the queue waits for the restart; a restart that fails too makes the instance unhealthy. */
  #crashed(error: TritonError, restartFailed = false): void {
    this.onHealth?.(
      false,
      restartFailed ? new TritonError("UNAVAILABLE", error.message, { cause: error }) : undefined,
    );
    const delayMs = this.#restartDelayMs;
    this.#restartDelayMs = Math.min(delayMs * 2, LAST_RESTART_MS);
    this.#restart = this.#context.clock.setTimer(delayMs, () => {
      this.start().then(
        () => this.onHealth?.(true),
        (failure) => {
          if (!this.#stopped) this.#crashed(TritonError.from(failure), true);
        },
      );
    });
  }
}
