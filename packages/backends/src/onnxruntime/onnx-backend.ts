import { fileURLToPath } from "node:url";
import type {
  Backend,
  Executor,
  ExecutorContext,
  ModelDescription,
  WorkerProgram,
} from "@tritonjs/core/backend";
import type { InstanceDevice } from "@tritonjs/core/internal";
import {
  describeInWorker,
  OpenedWorker,
  planInstances,
  prepareWorkers,
  WorkerExecutor,
} from "@tritonjs/core/internal";
import { disableTelemetry } from "@tritonjs/core/internal/worker";
import {
  errorOf,
  type InstanceHosting,
  type Isolation,
  type ModelConfig,
  TritonError,
} from "@tritonjs/protocol";
import { describeOnnxModel, lacksShapes, readOnnxFile } from "./describe-onnx-model.js";
import { NativeExecutor } from "./native-executor.js";
import { describeSession, NativeModel, PARALLEL_RUNS } from "./native-session.js";
import type { OnnxDescription } from "./onnx-file.js";
import {
  type ExecutionProvider,
  ONNX_ENGINES,
  type OnnxEngine,
  type OnnxRuntimeOptions,
  type SessionData,
} from "./onnx-options.js";
import { loadOrtApi, type OrtApi } from "./ort-c-api.js";
import { needsProcess, providerName, providersFor, sessionOptions } from "./ort-session.js";
import type { SessionTensors } from "./ort-tensors.js";

const WORKER = new URL("./ort-session.js", import.meta.url);

/** Runs an ONNX model, each instance in a worker or through ONNX Runtime's C interface. */
export class OnnxBackend implements Backend {
  readonly platform: string;
  readonly isolations: readonly Isolation[] = ["worker", "process"];
  readonly endsBatches: boolean;
  readonly #model: string | Uint8Array;
  readonly #engine: OnnxEngine;
  readonly #native = new NativeModel(() => this.#sessionData(ON_CPU, 1));
  #file: OnnxDescription | undefined;
  #description: ModelDescription | undefined;
  #opened: OpenedWorker | undefined;

  /**
   * @param hosting hosting that the parameters of a model in a repository give its instances
   * @throws TritonError INVALID_ARG for an unknown engine
   */
  constructor(
    private readonly options: OnnxRuntimeOptions,
    readonly hosting: InstanceHosting = {},
    readonly backendName = "onnxruntime",
  ) {
    const { model, engine = "worker" } = options;
    if (!ONNX_ENGINES.includes(engine)) {
      const text = `engine of the ONNX model: expected one of ${ONNX_ENGINES.join(", ")}, got '${String(engine)}'`;
      throw errorOf("INVALID_CONFIG", text);
    }
    // Before workers start, because they get copies of the environment.
    disableTelemetry();
    this.#model = model instanceof URL ? fileURLToPath(model) : model;
    this.#engine = engine;
    this.platform = backendName === "openvino" ? "" : "onnxruntime_onnx";
    this.endsBatches = engine !== "worker";
  }

  describe(): ModelDescription {
    this.#description ??= lacksShapes(this.#readFile())
      ? describeInWorker(WORKER, this.#sessionData(ON_CPU, 1), DESCRIBE_WITHIN_MS, "the ONNX model")
      : this.#describeFile("api" in this.#chooseEngine(ON_CPU, undefined, 1));
    return this.#description;
  }

  async open(config: ModelConfig): Promise<ModelDescription> {
    const planned = planInstances(config);
    const [first] = planned;
    if (first === undefined) return this.#describeFile(false);
    const device = { kind: first.kind, id: first.deviceId };
    const chosen = this.#chooseEngine(device, first.group.hosting, planned.length);
    // Reports faults of the file without opening a session.
    if (!lacksShapes(this.#readFile())) this.#describeFile("api" in chosen);
    if ("api" in chosen) {
      const session = await this.#native.open(chosen.api);
      return describeOnnxModel(this.#model, describeSession(session), this.#readFile(), true);
    }
    const program = this.#program(device, planned.length);
    const place = { hosting: this.#placed(program.data, first.group.hosting) };
    this.#opened = new OpenedWorker(config.name, program, place, (message) =>
      this.#warn(`model '${config.name}': ${message}`),
    );
    prepareWorkers(program, place, planned.length - 1);
    const session = (await this.#opened.description) as SessionTensors | undefined;
    return describeOnnxModel(this.#model, session, this.#readFile());
  }

  async close(): Promise<void> {
    await this.#opened?.close();
    await this.#native.dropOpened();
  }

  createExecutor(context: ExecutorContext): Executor {
    const { info, instanceCount, placement } = context;
    const chosen = this.#chooseEngine(info.device, context.hosting, instanceCount);
    if ("api" in chosen) return new NativeExecutor(this.#native, chosen.api, context);
    if (chosen.reason !== undefined && placement.index === 0) {
      context.log.info(`model '${info.modelName}': ONNX Runtime runs in workers: ${chosen.reason}`);
      const { executionTimeoutMs, isolation } = context.hosting;
      if (executionTimeoutMs !== undefined && isolation !== "process") {
        const text = "executionTimeoutMs has no effect on a worker thread: set isolation 'process'";
        context.log.warning(`model '${info.modelName}': ${text}`);
      }
    }
    const program = this.#program(info.device, instanceCount);
    return new WorkerExecutor(program, {
      ...context,
      hosting: this.#placed(program.data, context.hosting),
      warn: (message) => this.#warn(message),
      opened: placement.index === 0 ? this.#opened : undefined,
    });
  }

  #warn(message: string): void {
    if (this.options.onWarning === undefined) process.emitWarning(message, "TritonWarning");
    else this.options.onWarning(message);
  }

  #readFile(): OnnxDescription {
    this.#file ??= readOnnxFile(this.#model);
    return this.#file;
  }

  #describeFile(isNative: boolean): ModelDescription {
    return describeOnnxModel(this.#model, undefined, this.#readFile(), isNative);
  }

  /** Where an instance runs: in a process if its provider needs one, unless its hosting says otherwise. */
  #placed({ providers }: SessionData, hosting: InstanceHosting | undefined): InstanceHosting {
    return { ...(needsProcess(providers) && { isolation: "process" }), ...this.hosting, ...hosting };
  }

  #program(device: InstanceDevice, instanceCount: number) {
    return {
      entry: WORKER,
      data: this.#sessionData(device, instanceCount),
      interruptible: false,
      tensorsOnly: true,
      returnsInputs: true,
      reusesThread: true,
    } satisfies WorkerProgram;
  }

  #sessionData(device: InstanceDevice, instanceCount: number): SessionData {
    const {
      model: _model,
      engine: _engine,
      executionProviders,
      strictProviders = false,
      onWarning: _onWarning,
      ...settings
    } = this.options;
    const { inputs } = this.#readFile();
    return {
      model: this.#model,
      providers: providersFor(device, executionProviders),
      strict: strictProviders,
      sessionOptions: sessionOptions(settings, instanceCount),
      scalars: inputs.filter(({ dims }) => dims?.length === 0).map(({ name }) => name),
      ranksUnknown: inputs.filter(({ dims }) => dims === undefined).map(({ name }) => name),
    };
  }

  /**
   * Chooses the engine of an instance.
   *
   * @throws TritonError if the engine `native` is requested and cannot be used
   */
  #chooseEngine(
    device: InstanceDevice,
    hosting: InstanceHosting | undefined,
    instanceCount: number,
  ): ChosenEngine {
    // Reports faults of the file whichever engine runs it.
    const { providers } = this.#sessionData(device, instanceCount);
    if (this.#engine === "worker") return { reason: undefined };
    const obstacle = obstacleOf(providers, { ...this.hosting, ...hosting });
    if (this.#engine === "native") {
      if (obstacle === undefined) return { api: loadOrtApi() };
      throw errorOf("INVALID_CONFIG", `engine 'native': ${obstacle}; use the engine 'worker'`);
    }
    if (obstacle !== undefined) return { reason: obstacle };
    if (instanceCount > PARALLEL_RUNS) {
      const reason =
        `libuv's pool runs ${PARALLEL_RUNS} batches at a time, and the model has ${instanceCount} instances; start the ` +
        `program with UV_THREADPOOL_SIZE=${instanceCount + 2}`;
      return { reason };
    }
    try {
      return { api: loadOrtApi() };
    } catch (error) {
      return { reason: TritonError.from(error).message };
    }
  }
}

const ON_CPU: InstanceDevice = { kind: "KIND_CPU", id: 0 };

/** A worker that does not answer within this time is ended. */
const DESCRIBE_WITHIN_MS = 120_000;

/** The engine of an instance: ONNX Runtime's C interface, or the reason why it runs in a worker. */
type ChosenEngine = { readonly api: OrtApi } | { readonly reason: string | undefined };

function obstacleOf(
  [first]: readonly ExecutionProvider[],
  hosting: Pick<InstanceHosting, "isolation" | "heapLimitMb">,
): string | undefined {
  const provider = first && providerName(first);
  if (provider !== "cpu") return `expected the execution provider 'cpu', got '${provider}'`;
  if (hosting.isolation !== undefined)
    return `expected instances without isolation, got '${hosting.isolation}'`;
  if (hosting.heapLimitMb !== undefined)
    return "expected instances without heapLimitMb, which limits a worker";
  return undefined;
}
