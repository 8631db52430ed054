import type {
  Execution,
  ExecutionResult,
  Executor,
  ExecutorContext,
  InputCheck,
} from "@tritonjs/core/backend";
import { OutputsWithParameters } from "@tritonjs/core/backend";
import {
  BatchesOfWorker,
  type BatchOfWorker,
  DeclaredParameters,
  OpenExecutions,
  RESCHEDULE,
  Restarts,
  runningFields,
  settledWithin,
  type Timer,
} from "@tritonjs/core/internal";
import {
  elementCount,
  errorFor,
  type InstanceHosting,
  isDecoupled,
  type ModelConfig,
  type Tensor,
  TritonError,
} from "@tritonjs/protocol";
import { poolsOf } from "../gpu/pools-of.js";
import { readTensors } from "./frames.js";
import { type GpuTensor, PythonGpuMemory } from "./gpu-memory.js";
import {
  batchFrame,
  type FromPython,
  loadMessage,
  type PythonResult,
  readError,
  readParameters,
  type WireAsk,
  type WireResponse,
} from "./messages.js";
import { PythonCallHost, PythonServerRequests } from "./model-requests.js";
import { PythonSession, type PythonSettings } from "./python-session.js";

/** The parameters of models that this library reads. A model reads any others itself. */
export const PYTHON_PARAMETERS = new DeclaredParameters({
  execute: ["EXECUTION_ENV_PATH"],
  value: ["FORCE_CPU_ONLY_INPUT_TENSORS"],
});

/** A Python, held by one user of it. */
export interface FoundPython {
  /** The program: a path, or a name to look up in PATH. */
  readonly program: string;
  release(): Promise<void>;
}

/**
 * Runs an instance of a Python model in a process of its own. When the process dies, the requests that the model had
 * fail. The process restarts after a pause that doubles with each failure, and then runs the batches that it held ahead.
 */
export class PythonExecutor implements Executor {
  readonly isolation = "process";
  readonly mustFinish = false;
  readonly releasesInputs = true;
  memoryBytes: number | undefined;
  checkInput: InputCheck | undefined;
  onHealth: Executor["onHealth"];
  readonly #batches = new BatchesOfWorker(() => this.#limit());
  /** Batches with unanswered requests: the running batch, and batches whose response senders the model still holds. */
  readonly #open = new OpenExecutions();
  readonly #ahead: BatchesAhead;
  readonly #calls: PythonCallHost;
  readonly #serverRequests: PythonServerRequests;
  /** The open question for `is_ready` of the model, which all callers share, and what ends it. */
  #readiness: Promise<void> | undefined;
  #endQuestion: ((error?: TritonError) => void) | undefined;
  readonly restarts: Restarts;
  #session: PythonSession | undefined;
  #nextBatch = 0;
  #endedFor: string | undefined;
  readonly #warned = new Set<string>();

  /** Memory of GPUs that the process shares, if the model takes tensors there. */
  #gpu: PythonGpuMemory | undefined;
  readonly #wantsGpu: boolean;
  #pid: string | undefined;

  #python: FoundPython | undefined;
  #stopped = false;

  /**
   * @param directory of the model
   * @param find finds the Python of the instance, and unpacks its environment if necessary; it lives as long as the
   * instance
   */
  constructor(
    private settings: PythonSettings,
    private readonly directory: string,
    private readonly context: ExecutorContext,
    private readonly find?: () => Promise<FoundPython>,
  ) {
    const config = context.info.modelConfig;
    this.#wantsGpu = PYTHON_PARAMETERS.text({ config }, "FORCE_CPU_ONLY_INPUT_TENSORS") === "no";
    this.#ahead = new BatchesAhead(config, context.hosting);
    this.#calls = new PythonCallHost(
      (header, body) => this.#session?.send(header, body),
      (batch) => this.#open.get(batch)?.models,
      () => this.#gpu,
    );
    this.#serverRequests = new PythonServerRequests(
      context,
      (header) => this.#session?.send(header),
      () => runningFields(this.#open.executions),
    );
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

  get details(): Readonly<Record<string, string>> {
    if (this.#pid === undefined) return {};
    const { tensorsIn, tensorsOut } = this.#gpu ?? {};
    return {
      pid: this.#pid,
      ...(this.#gpu !== undefined && {
        gpuTensorsToProcess: String(tensorsIn),
        gpuTensorsFromProcess: String(tensorsOut),
      }),
    };
  }

  /** Inputs in memory of a GPU of CUDA stay there; any others are loaded before they are sent. */
  get takesSources(): boolean {
    return this.#gpu !== undefined;
  }

  async start(): Promise<void> {
    if (this.find !== undefined && this.#python === undefined) {
      const found = await this.find();
      if (this.#stopped) {
        await found.release();
        throw errorFor("MODEL_STOPPED", "the model was stopped while it was loading");
      }
      this.#python = found;
      this.settings = { ...this.settings, python: found.program };
    }
    const { info, hostPolicy, clock, log, gpus } = this.context;
    const gpuLibrary = this.#wantsGpu ? poolsOf(gpus)?.libraryFile : undefined;
    const session = new PythonSession({
      settings: this.settings,
      modelName: info.modelName,
      name: info.instanceName,
      task: loadMessage(this.settings, this.directory, this.context, gpuLibrary),
      clock,
      log,
      hostPolicy,
      message: (message, body) => this.#take(message, body),
      crashed: (why) => this.#crashed(why),
    });
    this.#session = session;
    try {
      await session.ready;
    } catch (error) {
      this.#session = undefined;
      this.#serverRequests.close();
      throw error;
    }
    // From now on the requests in flight keep this process alive, and an idle model does not.
    session.unref();
    this.checkInput = checkByLimits(info.modelName, session.maxElements);
    this.#pid = session.pid;
    this.#shareGpus(session, gpuLibrary);
    for (const ahead of this.#batches.all) {
      this.#send(ahead);
      const { batch, execution } = ahead;
      for (const index of execution.requests.keys()) {
        if (!execution.isOpen(index)) this.#sendCancel(batch, index);
      }
    }
    this.#batches.begin();
    this.#opened();
  }

  #shareGpus(session: PythonSession, library: string | undefined): void {
    if (!this.#wantsGpu) return;
    const { info, log, gpus } = this.context;
    if (session.gpu === true) {
      this.#gpu ??= new PythonGpuMemory(poolsOf(gpus)!);
      return;
    }
    if (this.#warned.has("")) return;
    this.#warned.add("");
    const why = library === undefined ? "CUDA's runtime library or a GPU is missing" : session.gpu;
    log.warning(
      `model '${info.modelName}' gets its tensors in memory of the CPU, although FORCE_CPU_ONLY_INPUT_TENSORS is 'no': ${why}`,
    );
  }

  get takesAhead(): number {
    return this.#ahead.count;
  }

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const loading = sourcesToLoad(execution);
    return loading.length === 0
      ? this.#run(execution)
      : Promise.all(loading).then(() => this.#run(execution));
  }

  #run(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const batch = this.#nextBatch++;
    execution.watch({
      askedToStop: (index) => this.#sendCancel(batch, index),
      givenUp: (index) => {
        this.#sendCancel(batch, index);
        this.#closeWhenOver(batch);
      },
    });
    return new Promise((resolve, reject) => {
      const work: BatchOfWorker = { batch, execution, resolve, reject };
      this.#batches.add(work);
      if (this.#batches.running === work) this.#opened();
      this.#send(work);
    });
  }

  #send(work: BatchOfWorker): void {
    const { batch, execution } = work;
    try {
      const { header, body } = batchFrame(batch, execution, work !== this.#batches.running, this.#gpu);
      this.#session?.command(header, body);
      execution.inputsReady();
    } catch (error) {
      // A tensor on a GPU could not be copied.
      this.#open.forget(batch);
      this.#batches.remove(work);
      this.#opened();
      work.reject(error);
    }
  }

  #sendCancel(batch: number, index: number): void {
    this.#session?.send({ type: "cancel", batch, index });
  }

  /** Opens the running batch: only this batch, and those that senders still answer, may call models. */
  #opened(): void {
    const { running } = this.#batches;
    if (running !== undefined) this.#open.add(running.batch, running.execution);
  }

  async checkReady(): Promise<void> {
    const session = this.#session;
    // Whether a crash counts is decided for all kinds of instances alike.
    if (!session?.isReady || !session.canTellReadiness) return;
    const asked = this.#readiness ?? this.#askReadiness(session);
    if (await settledWithin(this.context.clock, ANSWERS_WITHIN_MS, asked)) return asked;
    throw errorFor("MODEL_NOT_READY", "Timed out waiting for user-defined is_ready() response");
  }

  #askReadiness(session: PythonSession): Promise<void> {
    const asked = new Promise<void>((resolve, reject) => {
      this.#endQuestion = (error) => {
        this.#readiness = undefined;
        this.#endQuestion = undefined;
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    // The callers may have stopped waiting.
    asked.catch(() => {});
    this.#readiness = asked;
    session.send({ type: "readiness" });
    return asked;
  }

  #answerReadiness({ ready, error }: Extract<FromPython, { type: "readiness" }>): void {
    const text = `Model '${this.context.placement.name}' is not ready (user-defined check failed).`;
    if (error !== undefined) this.#endQuestion?.(new TritonError("INTERNAL", error));
    else this.#endQuestion?.(ready ? undefined : errorFor("MODEL_NOT_READY", text));
  }

  drained(): Promise<void> {
    return this.#open.whenEmpty();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.restarts.stop();
    const session = this.#session;
    if (session === undefined) {
      const text = `instance '${this.context.placement.name}' was stopped`;
      this.#batches.fail(errorFor("MODEL_STOPPED", text));
    } else {
      session.ref();
      if (session.isReady && this.#batches.running === undefined) session.end();
      else session.kill();
      await session.ended;
    }
    this.#gpu?.close();
    await this.#python?.release();
  }

  #take(message: FromPython, body: Uint8Array): void {
    switch (message.type) {
      case "executed":
        this.#executed(message, body);
        break;
      case "response":
        this.#respond(message, body);
        break;
      case "abandoned":
        this.#abandoned(message.batch, message.index);
        break;
      case "infer":
      case "taken":
      case "stop":
      case "end":
        this.#calls.take(message, body);
        break;
      case "released":
        this.#gpu?.takeBack(message.gpu);
        break;
      case "ask":
        if (message.what === "gpuMemory") this.#lendGpu(message);
        else this.#serverRequests.answer(message, body);
        break;
      case "forget":
        this.#serverRequests.forget(message);
        break;
      case "log":
        this.#serverRequests.log(message);
        break;
      case "readiness":
        this.#answerReadiness(message);
        break;
    }
  }

  /** Lends memory of a GPU for a tensor of the model. Without room, the tensor comes over the CPU. */
  #lendGpu({ call, arguments: [device, size] }: WireAsk): void {
    let value: GpuTensor | undefined;
    if (Number.isSafeInteger(device) && Number.isSafeInteger(size)) {
      value = this.#gpu?.allocate(device as number, size as number);
    }
    this.#session?.send({ type: "answer", call, value: value ?? null });
  }

  #executed(message: Extract<FromPython, { type: "executed" }>, body: Uint8Array): void {
    if (this.#batches.running?.batch !== message.batch) return;
    const { batch, execution, resolve, reject } = this.#batches.takeDone()!;
    this.#opened();
    execution.outputsReady();
    this.restarts.worked();
    this.memoryBytes = message.memory;
    if (message.took !== undefined) this.#ahead.took(message.took);
    if (message.error !== undefined) {
      this.#open.forget(batch);
      reject(new TritonError("INTERNAL", message.error));
      return;
    }
    const results = message.results!.map((result, index) => this.#result(execution, index, result, body));
    if (!results.includes(null)) {
      this.#open.forget(batch);
      resolve(results as ExecutionResult[]);
      return;
    }
    // Senders answer some of the requests, now or later.
    results.forEach((result, index) => {
      if (result === RESCHEDULE) execution.reschedule(index);
      else if (TritonError.is(result)) execution.sendError(index, result, true);
      else if (result !== null) execution.send(index, result, true);
    });
    resolve(undefined);
    this.#open.forgetWhenOver(batch);
  }

  /** Reads the result of `execute` for one request; null when a sender answers the request. */
  #result(
    execution: Execution,
    index: number,
    result: PythonResult,
    body: Uint8Array,
  ): ExecutionResult | null {
    if (result === null) return null;
    if (result === "again") return RESCHEDULE;
    if (!("missing" in result)) return this.#readResponse(execution, index, result, body);
    const { modelName } = this.context.info;
    const text = `model '${modelName}' returned None for a request without taking its response sender: return a response or call get_response_sender()`;
    return new TritonError("INTERNAL", text);
  }

  #respond(message: Extract<FromPython, { type: "response" }>, body: Uint8Array): void {
    const { batch, index } = message;
    const execution = this.#open.get(batch);
    if (execution === undefined || !execution.isOpen(index)) {
      this.#gpu?.takeBackAll(message.outputs);
      return;
    }
    // The first response of a model that is not decoupled is its last.
    const final = message.final || !execution.decoupled;
    if (message.outputs === undefined && message.error === undefined) execution.finish(index);
    else {
      const result = this.#readResponse(execution, index, message, body);
      if (TritonError.is(result)) execution.sendError(index, result, final);
      else execution.send(index, result, final);
    }
    if (final) {
      this.#closeWhenOver(batch);
      return;
    }
    const taken = () => this.#session?.send({ type: "taken", batch, index });
    const wait = execution.writable(index);
    if (wait === undefined) taken();
    else void wait.then(taken);
  }

  /** Fails a request whose sender the model dropped before its last response. */
  #abandoned(batch: number, index: number): void {
    const execution = this.#open.get(batch);
    if (execution === undefined) return;
    const { modelName } = this.context.info;
    const text = `model '${modelName}' released a request without sending TRITONSERVER_RESPONSE_COMPLETE_FINAL`;
    execution.sendError(index, new TritonError("INTERNAL", text), true);
    this.#closeWhenOver(batch);
  }

  /** Keeps the running batch open, because `execute` may call other models on its behalf. */
  #closeWhenOver(batch: number): void {
    if (this.#batches.running?.batch !== batch) this.#open.forgetWhenOver(batch);
  }

  /**
   * Reads a response of the model. As with Triton, a Python model's outputs pass unchanged, even where they differ from
   * its configuration, and may be missing. The log has one warning for each such output.
   */
  #readResponse(
    execution: Execution,
    index: number,
    { error, outputs = [], parameters = [] }: WireResponse,
    body: Uint8Array,
  ): Map<string, Tensor> | TritonError {
    if (error !== undefined) return readError(error);
    const rows = execution.decoupled ? undefined : execution.requests[index]!.rows;
    try {
      const { innerOutputs } = execution.requests[index]!;
      const tensors = readTensors(outputs, body, this.#gpu, (name) => innerOutputs?.has(name) === true);
      for (const [name, tensor] of tensors) if (!this.#warned.has(name)) this.#check(name, tensor, rows);
      if (parameters.length === 0) return tensors;
      return new OutputsWithParameters(tensors, readParameters(parameters));
    } catch (thrown) {
      return TritonError.from(thrown);
    }
  }

  /** @param rows expected rows of the output; undefined for any number */
  #check(name: string, tensor: Tensor, rows: number | undefined): void {
    const { checker, log } = this.context;
    try {
      checker.check(new Map([[name, tensor]]), rows, [name]);
    } catch (error) {
      this.#warned.add(name);
      log.warning(`${TritonError.from(error).message.trim()}; clients get the response unchecked`);
    }
  }

  #crashed(why: string): void {
    const how = this.#endedFor ?? why;
    this.#endedFor = undefined;
    this.#session = undefined;
    this.#gpu?.processEnded();
    const error = errorFor("WORKER_CRASHED", `${this.#unhealthy} It ${how}.`);
    this.restarts.crashed(error);
    this.#batches.takeLost()?.reject(error);
    if (this.restarts.over) this.#batches.fail(error);
    this.#open.fail(error);
    this.#calls.endAll();
    this.#serverRequests.close();
    this.#endQuestion?.(error);
  }

  get #unhealthy(): string {
    return `Stub process '${this.context.placement.name}' is not healthy.`;
  }

  #limit(): Timer | undefined {
    const { clock, hosting } = this.context;
    const limitMs = hosting.executionTimeoutMs;
    if (limitMs === undefined) return undefined;
    return clock.setTimer(limitMs, () => {
      this.#endedFor = `was ended: its batch ran for more than ${limitMs} ms`;
      this.#session?.kill();
    });
  }
}

/** Refuses inputs that are larger than the model declares, before their bytes are copied to its process. */
function checkByLimits(
  modelName: string,
  maxElements: Readonly<Record<string, number>>,
): InputCheck | undefined {
  const limits = new Map(Object.entries(maxElements));
  if (limits.size === 0) return undefined;
  return (name, shape) => {
    const limit = limits.get(name);
    const count = elementCount(shape);
    if (limit === undefined || count <= limit) return;
    const got = `${count} in shape [${shape.join(",")}]`;
    const text = `input '${name}' of model '${modelName}': expected at most ${limit} elements, got ${got}`;
    throw errorFor("INVALID_INPUT", text);
  };
}

/** Loads of inputs whose elements are neither in memory of JavaScript nor in that of a GPU of CUDA. */
function sourcesToLoad({ requests }: Execution): readonly Promise<void>[] {
  const loading: Promise<void>[] = [];
  for (const { inputs } of requests) {
    for (const { source } of inputs.values()) {
      if (source !== undefined && source.cuda === undefined) loading.push(source.load());
    }
  }
  return loading;
}

/** The process may hold about this much work, in microseconds, besides the running batch. */
const MOST_MICROSECONDS = 2000;
const MOST_BATCHES = 16;
/** The estimate grows or shrinks by this factor with each batch. So it is near the median, whatever one batch took. */
const STEP = 1.1;

/**
 * How many batches a process gets while it runs one. Waking a process costs more than a short batch, so it gets several
 * at once. Long batches wait in the queue of the server, where they can still be cancelled or grow.
 */
export class BatchesAhead {
  #estimate: number | undefined;
  readonly #isPossible: boolean;

  constructor(config: ModelConfig, hosting: InstanceHosting) {
    // A batch of a sequence may depend on the answer before it. A worn process gets no more batches.
    this.#isPossible =
      config.sequenceBatching === undefined && !isDecoupled(config) && hosting.recycle === undefined;
  }

  took(microseconds: number): void {
    if (this.#estimate === undefined) this.#estimate = Math.max(1, microseconds);
    else if (microseconds > this.#estimate) this.#estimate *= STEP;
    else if (microseconds < this.#estimate) this.#estimate /= STEP;
  }

  get count(): number {
    if (!this.#isPossible || this.#estimate === undefined) return 0;
    return Math.min(MOST_BATCHES, Math.floor(MOST_MICROSECONDS / this.#estimate));
  }
}

/** Triton's limit. A model that takes longer counts as not ready. */
const ANSWERS_WITHIN_MS = 5000;
