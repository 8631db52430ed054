import {
  divideOutputs,
  type Execution,
  type ExecutionResult,
  type Executor,
  type ExecutorContext,
} from "@tritonjs/core/backend";
import { joinInputsIn, requestedBy, type Tensors, totalRows } from "@tritonjs/core/internal";
import { errorFor, type ModelConfig, type Tensor, TritonError } from "@tritonjs/protocol";
import { poolsOf } from "../gpu/pools-of.js";
import { withDefaults } from "./default-inputs.js";
import type { BoundRun } from "./native/bound-run.js";
import type { NativeRun } from "./native/native-run.js";
import type { NativeModel } from "./native/native-session.js";
import type { OrtApi } from "./native/ort-c-api.js";
import { neededOutputs } from "./ort-session.js";
import { scalarOutputs } from "./ort-tensors.js";

/**
 * Runs batches through ONNX Runtime's C interface, on threads of libuv's pool. All instances of a model share one
 * session. A batch ends early when all its requests are cancelled, and when it exceeds the execution time limit.
 */
export class NativeExecutor implements Executor {
  /** A running batch can be ended. */
  readonly mustFinish = false;
  readonly releasesInputs = true;
  /** Inputs on the device of the session are used there; any others are loaded before a run. */
  readonly takesSources = true;
  #properties: Readonly<Record<string, string>> = { engine: "native" };
  readonly #shaped: ReturnType<typeof scalarOutputs>;
  readonly #outputsFor: ReturnType<typeof neededOutputs>;
  #run: NativeRun | BoundRun | undefined;
  #starting: Promise<void> | undefined;
  #reason: TritonError | undefined;
  #isRunning = false;
  #onIdle: (() => void) | undefined;

  constructor(
    private readonly model: Promise<NativeModel>,
    private readonly api: OrtApi,
    private readonly context: ExecutorContext,
  ) {
    this.#shaped = scalarOutputs(this.#config);
    this.#outputsFor = neededOutputs(this.#config);
  }

  /** With the numbers of tensors that were copied to the device and from it, if the session has one. */
  get details(): Readonly<Record<string, string>> {
    return { ...this.#properties, ...this.#run?.details };
  }

  start(): Promise<void> {
    this.#starting = this.#open();
    return this.#starting;
  }

  async #open(): Promise<void> {
    try {
      const model = await this.model;
      const session = await model.acquire(this.api);
      const data = model.data();
      const { BoundRun, NativeRun } = await import("./native/native-engine.js");
      this.#run =
        session.deviceMemory === undefined
          ? new NativeRun(session, data, this.#config)
          : new BoundRun(session, data, this.#config, poolsOf(this.context.gpus));
      const { version: onnxRuntime, file: library } = this.api;
      const [executionProvider] = session.providers;
      this.#properties = { executionProvider: executionProvider!, engine: "native", onnxRuntime, library };
      addToExit(this);
    } finally {
      await (await this.model).dropOpened();
    }
  }

  async execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    this.#watch(execution);
    try {
      const run = this.#run;
      if (run === undefined) throw this.#reason ?? this.#stopped();
      const isJoined = execution.requests.length > 1 || execution.layout !== undefined;
      const loading = sourcesToLoad(execution, (name, tensor) => !isJoined && run.takes(name, tensor));
      if (loading.length > 0) await Promise.all(loading);
      const given = joinInputsIn(execution, (name) => (byteSize) => run.memory.of(name, byteSize));
      const inputs = withDefaults(given, run.session.defaults);
      execution.inputsReady();
      const kept = isJoined ? undefined : execution.requests[0]!.innerOutputs;
      const requested = requestedBy(execution.requests);
      const rows = totalRows(execution.requests);
      const outputs = await run.session.call(() =>
        this.#runBatch(inputs, this.#outputsFor(requested), kept, rows, execution),
      );
      execution.outputsReady();
      return divideOutputs(
        execution,
        this.context.checker.check(this.#shaped(outputs), rows, requested, true),
      );
    } finally {
      this.#reason = undefined;
    }
  }

  async stop(): Promise<void> {
    await this.#starting?.catch(() => {});
    const model = await this.model;
    await model.dropOpened();
    const run = this.#run;
    if (run === undefined) return;
    this.end(this.#stopped());
    this.#run = undefined;
    if (this.#isRunning) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    removeFromExit(this);
    run.close();
    await model.release();
  }

  /** Ends the running batch with an error, which its open requests get. */
  end(reason: TritonError): void {
    this.#reason ??= reason;
    if (this.#isRunning) this.#run?.end();
  }

  #watch(execution: Execution): void {
    let open = execution.requests.length;
    const givenUp = (): void => {
      if (--open === 0) this.end(new TritonError("CANCELLED", "all requests of the batch were cancelled"));
    };
    execution.watch({ givenUp });
    // Null requests, and those that were cancelled on the way here.
    for (const index of execution.requests.keys()) if (!execution.isOpen(index)) givenUp();
  }

  async #runBatch(
    inputs: Tensors,
    outputs: readonly string[],
    kept: ReadonlySet<string> | undefined,
    rows: number,
    execution: Execution,
  ): Promise<Map<string, Tensor>> {
    const run = this.#run;
    if (this.#reason !== undefined || run === undefined) throw this.#reason ?? this.#stopped();
    execution.postponed?.();
    const { clock, hosting } = this.context;
    const limitMs = hosting.executionTimeoutMs;
    const end = () => {
      const text = `${this.#name} ended its batch: it ran for more than ${limitMs} ms`;
      this.end(errorFor("TIME_LIMIT_EXCEEDED", text));
    };
    const limit = limitMs === undefined ? undefined : clock.setTimer(limitMs, end);
    this.#isRunning = true;
    try {
      return await run.run(inputs, outputs, kept, rows);
    } catch (error) {
      throw this.#reason ?? error;
    } finally {
      this.#isRunning = false;
      limit?.cancel();
      this.#onIdle?.();
    }
  }

  #stopped(): TritonError {
    return errorFor("MODEL_STOPPED", `${this.#name} was stopped`);
  }

  get #config(): ModelConfig {
    return this.context.info.modelConfig;
  }

  get #name(): string {
    const { instanceName, modelName } = this.context.info;
    return `instance '${instanceName}' of model '${modelName}'`;
  }
}

/** Loads of inputs whose elements are elsewhere, but of those that `takes` says are used there. */
function sourcesToLoad(
  { requests }: Execution,
  takes: (name: string, tensor: Tensor) => boolean,
): readonly Promise<void>[] {
  const loading: Promise<void>[] = [];
  for (const { inputs } of requests) {
    for (const [name, tensor] of inputs) {
      if (tensor.source !== undefined && !takes(name, tensor)) loading.push(tensor.source.load());
    }
  }
  return loading;
}

/**
 * Instances of this thread whose batches end when the process exits. Node waits for the threads of libuv's pool before
 * it exits, so without this a long batch would delay the exit.
 */
const running = new Set<NativeExecutor>();

function addToExit(instance: NativeExecutor): void {
  if (running.size === 0) process.once("exit", endAll);
  running.add(instance);
}

function removeFromExit(instance: NativeExecutor): void {
  running.delete(instance);
  if (running.size === 0) process.off("exit", endAll);
}

function endAll(): void {
  for (const instance of running) instance.end(errorFor("MODEL_STOPPED", "the process exits"));
}
