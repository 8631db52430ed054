import { divideOutputs, type Execution, type ExecutionResult, type Executor } from "@tritonjs/core/backend";
import type { Allocate, Clock, InstanceInfo, OutputChecker, Tensors } from "@tritonjs/core/internal";
import { joinInputsIn, totalRows } from "@tritonjs/core/internal";
import { type InstanceHosting, type ModelConfig, type Tensor, TritonError } from "@tritonjs/protocol";
import { NativeRun } from "./native-run.js";
import { type NativeSession, openNativeSession, runLane, SharedSession } from "./native-session.js";
import type { OrtApi } from "./ort-c-api.js";
import type { SessionData } from "./ort-session.js";
import { scalarOutputs } from "./ort-tensors.js";

/** The parts of a server that an instance needs. */
interface NativeSurroundings {
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  readonly hosting: InstanceHosting;
}

interface NativeContext extends NativeSurroundings {
  /** Gives up the session that was opened to describe the model, if there is one. May be called more than once. */
  readonly dropOpened: () => Promise<void>;
}

/**
 * Runs batches through ONNX Runtime's C interface, on threads of libuv's pool. All instances of a model share one
 * session. A batch ends early when all its requests are cancelled, and when it exceeds the execution time limit.
 */
class NativeExecutor implements Executor, RunningInstance {
  /** A running batch can be ended. */
  readonly mustFinish = false;
  readonly releasesInputs = true;
  readonly details: Readonly<Record<string, string>> = { executionProvider: "cpu", engine: "native" };
  readonly #context: NativeContext;
  readonly #data: SessionData;
  readonly #session: SharedSession;
  readonly #shaped: ReturnType<typeof scalarOutputs>;
  readonly #memory = new MergeMemory();
  #run: NativeRun | undefined;
  #starting: Promise<void> | undefined;
  /** Why the running batch has to end. */
  #reason: TritonError | undefined;
  #isRunning = false;
  #onIdle: (() => void) | undefined;

  constructor(session: SharedSession, data: SessionData, context: NativeContext) {
    this.#session = session;
    this.#data = data;
    this.#context = context;
    this.#shaped = scalarOutputs(this.#config);
  }

  start(): Promise<void> {
    this.#starting = this.#open();
    return this.#starting;
  }

  async #open(): Promise<void> {
    try {
      const session = await this.#session.acquire();
      this.#run = new NativeRun(session, this.#data, this.#config);
      endRunsAtExit.add(this);
    } finally {
      await this.#context.dropOpened();
    }
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    this.#watch(execution);
    const inputs = joinInputsIn(execution, this.#memory.of);
    execution.inputsReady();
    try {
      const outputs = await runLane.run(() => this.#runBatch(inputs, execution), undefined);
      execution.outputsReady();
      const rows = totalRows(execution.requests);
      return divideOutputs(execution, this.#context.checker.check(this.#shaped(outputs), rows, [], true));
    } finally {
      this.#reason = undefined;
    }
  }

  async stop(): Promise<void> {
    await this.#starting?.catch(() => {});
    await this.#context.dropOpened();
    const run = this.#run;
    if (run === undefined) return;
    this.end(this.#stopped());
    this.#run = undefined;
    if (this.#isRunning) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    endRunsAtExit.delete(this);
    run.close();
    await this.#session.release();
  }

  /** Ends the running batch with an error, which its open requests get. */
  end(reason: TritonError): void {
    this.#reason ??= reason;
    if (this.#isRunning) this.#run?.end();
  }

  /** Ends the batch when all its requests are cancelled. */
  #watch(execution: Execution): void {
    let open = execution.requests.length;
    const givenUp = (): void => {
      if (--open === 0) this.end(new TritonError("CANCELLED", "all requests of the batch were cancelled"));
    };
    execution.watch({ givenUp });
    // Null requests, and those that were cancelled on the way here.
    for (const index of execution.requests.keys()) if (!execution.isOpen(index)) givenUp();
  }

  async #runBatch(inputs: Tensors, execution: Execution): Promise<Map<string, Tensor>> {
    const run = this.#run;
    if (this.#reason !== undefined || run === undefined) throw this.#reason ?? this.#stopped();
    execution.postponed?.();
    const { clock, hosting } = this.#context;
    const limitMs = hosting.executionTimeoutMs;
    const limit =
      limitMs === undefined ? undefined : clock.setTimer(limitMs, () => this.end(this.#tooLong(limitMs)));
    this.#isRunning = true;
    try {
      return await run.run(inputs);
    } catch (error) {
      throw this.#reason ?? error;
    } finally {
      this.#isRunning = false;
      limit?.cancel();
      this.#onIdle?.();
    }
  }

  #stopped(): TritonError {
    return new TritonError("UNAVAILABLE", `${this.#name} was stopped`, { reason: "MODEL_STOPPED" });
  }

  #tooLong(limitMs: number): TritonError {
    return new TritonError(
      "UNAVAILABLE",
      `${this.#name} ended its batch: it ran for more than ${limitMs} ms`,
      { reason: "TIME_LIMIT_EXCEEDED" },
    );
  }

  get #config(): ModelConfig {
    return this.#context.info.modelConfig;
  }

  get #name(): string {
    const { instanceName, modelName } = this.#context.info;
    return `instance '${instanceName}' of model '${modelName}'`;
  }
}

/** A model whose instances share one session. */
export class NativeModel {
  #session: SharedSession | undefined;
  #isOpened = false;

  /** @param data makes the settings of the session */
  constructor(private readonly data: () => SessionData) {}

  /** Opens the session to describe the model. It stays open until `dropOpened`. */
  async open(api: OrtApi): Promise<NativeSession> {
    const session = await this.#shared(api).acquire();
    this.#isOpened = true;
    return session;
  }

  /** Gives up the session that describes the model. Instances keep it open. */
  readonly dropOpened = async (): Promise<void> => {
    if (!this.#isOpened) return;
    this.#isOpened = false;
    await this.#session?.release();
  };

  executor(api: OrtApi, surroundings: NativeSurroundings): NativeExecutor {
    const session = this.#shared(api);
    return new NativeExecutor(session, this.data(), { ...surroundings, dropOpened: this.dropOpened });
  }

  #shared(api: OrtApi): SharedSession {
    this.#session ??= new SharedSession(() => openNativeSession(api, this.data()));
    return this.#session;
  }
}

/** An instance that may have a batch on another thread. */
interface RunningInstance {
  /** Ends its running batch. */
  end(reason: TritonError): void;
}

/**
 * Instances whose batches end when the process exits. Node waits for the threads of libuv's pool before it exits, so
 * without this a long batch would delay the exit.
 */
class ExitGuard {
  readonly #instances = new Set<RunningInstance>();

  add(instance: RunningInstance): void {
    if (this.#instances.size === 0) process.once("exit", this.#endAll);
    this.#instances.add(instance);
  }

  delete(instance: RunningInstance): void {
    this.#instances.delete(instance);
    if (this.#instances.size === 0) process.off("exit", this.#endAll);
  }

  readonly #endAll = (): void => {
    const reason = new TritonError("UNAVAILABLE", "the process exits", { reason: "MODEL_STOPPED" });
    for (const instance of this.#instances) instance.end(reason);
  };
}

/** The guard of this thread. */
const endRunsAtExit = new ExitGuard();

/**
 * Memory in which an instance joins the inputs of its batches. A batch overwrites that of the batch before, so the
 * memory is as large as the largest batch so far, and its pages are touched once.
 */
class MergeMemory {
  readonly #buffers = new Map<string, ArrayBuffer>();

  /** The memory of an input. */
  readonly of = (name: string): Allocate => {
    return (byteSize) => {
      let buffer = this.#buffers.get(name);
      if (buffer === undefined || buffer.byteLength < byteSize) {
        buffer = new ArrayBuffer(byteSize);
        this.#buffers.set(name, buffer);
      }
      return new Uint8Array(buffer, 0, byteSize);
    };
  };
}
