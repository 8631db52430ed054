import { fileURLToPath } from "node:url";
import type { HostPolicy } from "@tritonjs/core";
import type {
  Backend,
  Executor,
  ExecutorContext,
  ModelDescription,
  WorkerProgram,
} from "@tritonjs/core/backend";
import { planInstances } from "@tritonjs/core/extension";
import { type DeviceId, OpenedWorker, prepareWorkers, WorkerExecutor } from "@tritonjs/core/internal";
import {
  definedMembers,
  errorFor,
  type InstanceHosting,
  type Isolation,
  type ModelConfig,
  TritonError,
} from "@tritonjs/protocol";
import { describeInWorker } from "../description/describe-in-worker.js";
import { disableTelemetry } from "../onnx-telemetry.js";
import { defaultInputsOf, refuseUnknownInputs } from "./default-inputs.js";
import {
  describeOnnxModel,
  lacksShapes,
  type OnnxFile,
  readOnnxFile,
  type SessionTensors,
} from "./describe-onnx-model.js";
import type { NativeModel } from "./native/native-session.js";
import { loadOrtApi, type OrtApi, PARALLEL_RUNS } from "./native/ort-c-api.js";
import { NativeExecutor } from "./native-executor.js";
import {
  nativeOnly,
  ONNX_ENGINES,
  type OnnxEngine,
  type OnnxRuntimeOptions,
  quoted,
  type SessionData,
} from "./onnx-options.js";
import { needsProcess, providerName, providersFor, sessionOptions } from "./ort-session.js";
import { shortNames } from "./provider-names.js";

const WORKER = new URL("./ort-session.js", import.meta.url);

/** Runs an ONNX model, each instance in a worker or through ONNX Runtime's C interface. */
export class OnnxBackend implements Backend {
  readonly platform: string;
  readonly isolations: readonly Isolation[] = ["worker", "process"];
  readonly endsBatches: boolean;
  readonly #model: string | Uint8Array;
  readonly #engine: OnnxEngine | undefined;
  /** Options that only the engine `native` can follow, for texts. */
  readonly #nativeOnly: readonly string[];
  /** A session for each GPU, and one for the CPU. */
  readonly #native = new Map<number, Promise<NativeModel>>();
  /** Inputs with a default that the configuration makes optional. */
  #defaultInputs: readonly string[] = [];
  #file: OnnxFile | undefined;
  #description: ModelDescription | undefined;
  #opened: OpenedWorker | undefined;
  #saidWasm = false;

  /**
   * @param hosting hosting that the parameters of a model in a repository give its instances
   * @param file the model's file, if it was read already
   * @throws TritonError INVALID_ARG for an unknown engine
   */
  constructor(
    private readonly options: OnnxRuntimeOptions,
    readonly hosting: InstanceHosting = {},
    readonly backendName = "onnxruntime",
    file?: OnnxFile,
  ) {
    this.#file = file;
    const { model, engine } = options;
    if (engine !== undefined && !ONNX_ENGINES.includes(engine)) {
      const text = `engine of the ONNX model: expected one of ${ONNX_ENGINES.join(", ")}, got '${String(engine)}'`;
      throw errorFor("INVALID_CONFIG", text);
    }
    // Before workers start, because they get copies of the environment.
    disableTelemetry();
    this.#model = model instanceof URL ? fileURLToPath(model) : model;
    this.#engine = engine;
    this.platform = backendName === "openvino" ? "" : "onnxruntime_onnx";
    this.#nativeOnly = nativeOnly(options);
    this.endsBatches = mayBeNative(options);
  }

  describe(): ModelDescription {
    this.#description ??= lacksShapes(this.#readFile())
      ? describeInWorker(WORKER, this.#sessionData(ON_CPU, 1), DESCRIBE_WITHIN_MS, "the ONNX model")
      : this.#describeFile("api" in this.#chooseEngine(ON_CPU, undefined, 1));
    return this.#description;
  }

  async open(config: ModelConfig, hostPolicy?: HostPolicy): Promise<ModelDescription> {
    const planned = planInstances(config);
    const [first] = planned;
    if (first === undefined) return this.#describeFile(false);
    const device = { kind: first.kind, id: first.deviceId };
    const chosen = this.#chooseEngine(device, first.group.hosting, planned.length);
    // Reports faults of the file without opening a session.
    if (!lacksShapes(this.#readFile())) this.#describeFile("api" in chosen);
    this.#defaultInputs = defaultInputsOf(this.#readFile(), config);
    if ("api" in chosen) {
      const { describeSession } = await import("./native/native-engine.js");
      const session = await (await this.#nativeModel(device, config.name)).open(chosen.api);
      return describeOnnxModel(this.#model, describeSession(session), this.#readFile(), true);
    }
    const program = this.#program(device, planned.length);
    const place = { hosting: this.#placed(program.data, first.group.hosting), hostPolicy };
    this.#opened = new OpenedWorker(config.name, program, place, (message) =>
      this.#warn(`model '${config.name}': ${message}`),
    );
    prepareWorkers(program, place, planned.length - 1);
    const session = (await this.#opened.description) as SessionTensors | undefined;
    return describeOnnxModel(this.#model, session, this.#readFile());
  }

  async close(): Promise<void> {
    await this.#opened?.close();
    await Promise.all([...this.#native.values()].map(async (model) => (await model).dropOpened()));
  }

  createExecutor(context: ExecutorContext): Executor {
    const { info, instanceCount, placement } = context;
    const file = this.#readFile();
    this.#defaultInputs = defaultInputsOf(file, info.modelConfig);
    refuseUnknownInputs(file, this.#defaultInputs, info.modelConfig);
    const chosen = this.#chooseEngine(info.device, context.hosting, instanceCount);
    if ("api" in chosen) {
      if (placement.index === 0) {
        const { version, file, providers, build } = chosen.api;
        const has = shortNames(providers).join(", ");
        context.log.info(
          `model '${info.modelName}': ONNX Runtime ${version} of '${file}' (${has}; ${build})`,
        );
      }
      return new NativeExecutor(this.#nativeModel(info.device, info.modelName), chosen.api, context);
    }
    if (chosen.reason !== undefined && placement.index === 0) {
      context.log.info(`model '${info.modelName}': ONNX Runtime runs in workers: ${chosen.reason}`);
      const { executionTimeoutMs, isolation } = context.hosting;
      if (executionTimeoutMs !== undefined && isolation !== "process") {
        const text = "executionTimeoutMs has no effect on a worker thread: set isolation 'process'";
        context.log.warning(`model '${info.modelName}': ${text}`);
      }
    }
    if (this.#nativeOnly.length > 0 && placement.index === 0) {
      const why = chosen.reason === undefined ? "" : ` (${chosen.reason})`;
      this.#warn(
        `model '${info.modelName}': options ${quoted(this.#nativeOnly)} have no effect: onnxruntime-node does not pass ` +
          `them on; use the engine 'native'${why}`,
      );
    }
    const program = this.#program(info.device, instanceCount);
    return new WorkerExecutor(program, {
      ...context,
      hosting: this.#placed(program.data, context.hosting),
      warn: (message) => this.#warn(message),
      onReport: (reason) => this.#isWasm(reason as string, context),
      opened: placement.index === 0 ? this.#opened : undefined,
    });
  }

  /** The model on a device: instances on one device share a session. */
  #nativeModel(device: DeviceId, name: string): Promise<NativeModel> {
    const key = device.kind === "KIND_GPU" ? device.id : CPU;
    let model = this.#native.get(key);
    if (model === undefined) {
      const data = () => this.#sessionData(device, 1);
      const warn = (text: string) => this.#warn(`model '${name}': ${text}`);
      model = import("./native/native-engine.js").then(({ NativeModel }) => new NativeModel(data, warn));
      this.#native.set(key, model);
    }
    return model;
  }

  /** Logs once that WebAssembly runs the model, because `onnxruntime-node` cannot be loaded. */
  #isWasm(reason: string, { info, log }: ExecutorContext): void {
    if (this.#saidWasm) return;
    this.#saidWasm = true;
    log.info(`model '${info.modelName}': ONNX Runtime runs as WebAssembly: ${reason}`);
  }

  #warn(message: string): void {
    if (this.options.onWarning === undefined) process.emitWarning(message, "TritonWarning");
    else this.options.onWarning(message);
  }

  #readFile(): OnnxFile {
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

  #program(device: DeviceId, instanceCount: number) {
    return {
      entry: WORKER,
      data: this.#sessionData(device, instanceCount),
      interruptible: false,
      tensorsOnly: true,
      returnsInputs: true,
      // The memory of WebAssembly never shrinks.
      reusesThread: this.#engine !== "wasm",
    } satisfies WorkerProgram;
  }

  #sessionData(device: DeviceId, instanceCount: number): SessionData {
    const {
      model: _model,
      engine: _engine,
      executionProviders,
      strictProviders = false,
      onWarning: _onWarning,
      library,
      providerLibraries,
      runConfig,
      globalThreads,
      ...settings
    } = this.options;
    const file = this.#readFile();
    const inputs = [...file.inputs, ...file.optionalInputs];
    return {
      isWasm: this.#engine === "wasm",
      model: this.#model,
      providers: providersFor(device, executionProviders),
      strict: strictProviders,
      sessionOptions: sessionOptions(settings, instanceCount),
      defaultInputs: this.#defaultInputs,
      scalars: inputs.filter(({ dims }) => dims?.length === 0).map(({ name }) => name),
      ranksUnknown: inputs.filter(({ dims }) => dims === undefined).map(({ name }) => name),
      native: definedMembers({ library, providerLibraries, runConfig, globalThreads }),
    };
  }

  /**
   * Chooses the engine of an instance.
   *
   * @throws TritonError if the engine `native` is requested and cannot be used
   */
  #chooseEngine(device: DeviceId, hosting: InstanceHosting | undefined, instanceCount: number): ChosenEngine {
    // Reports faults of the file whichever engine runs it.
    const { providers } = this.#sessionData(device, instanceCount);
    const { library, providerLibraries } = this.options;
    const needsNative = library !== undefined || providerLibraries !== undefined;
    if (this.#engine === "wasm") {
      const provider = providerName(providers[0]!);
      if (provider === "cpu" || provider === "wasm") return { reason: undefined };
      const text = `engine 'wasm': expected the execution provider 'cpu', got '${provider}'; use the engine 'worker'`;
      throw errorFor("INVALID_CONFIG", text);
    }
    const isRequired = this.#engine === "native" || (this.#engine !== "worker" && needsNative);
    if (!mayBeNative(this.options)) {
      if (!needsNative) return { reason: undefined };
      const text = "options 'library' and 'providerLibraries': expected the engine 'native', got 'worker'";
      throw errorFor("INVALID_CONFIG", text);
    }
    const obstacle = obstacleOf({ ...this.hosting, ...hosting });
    if (obstacle !== undefined) {
      if (!isRequired) return { reason: obstacle };
      throw errorFor("INVALID_CONFIG", `engine 'native': ${obstacle}; use the engine 'worker'`);
    }
    if (this.#engine === "auto" && !isRequired && instanceCount > PARALLEL_RUNS) {
      const reason =
        `libuv's pool runs ${PARALLEL_RUNS} batches at a time, and the model has ${instanceCount} instances; start the ` +
        `program with UV_THREADPOOL_SIZE=${instanceCount + 2}`;
      return { reason };
    }
    try {
      const [first] = providers.map(providerName);
      return { api: loadOrtApi(library, first === "cpu" ? undefined : first) };
    } catch (error) {
      if (isRequired) throw error;
      return { reason: TritonError.from(error).message };
    }
  }
}

/** Key of the session on the CPU. */
const CPU = -1;

/** Whether the engine `native` may run the model: on request, or because only it follows the options. */
export function mayBeNative(options: Omit<OnnxRuntimeOptions, "model">): boolean {
  const engine = options.engine ?? (nativeOnly(options).length > 0 ? "native" : "worker");
  return engine === "native" || engine === "auto";
}

const ON_CPU: DeviceId = { kind: "KIND_CPU", id: 0 };

/** A worker that does not answer within this time is ended. */
const DESCRIBE_WITHIN_MS = 120_000;

/** The engine of an instance: ONNX Runtime's C interface, or the reason why it runs in a worker. */
type ChosenEngine = { readonly api: OrtApi } | { readonly reason: string | undefined };

function obstacleOf(hosting: Pick<InstanceHosting, "isolation" | "heapLimitMb">): string | undefined {
  if (hosting.isolation !== undefined)
    return `expected instances without isolation, got '${hosting.isolation}'`;
  if (hosting.heapLimitMb !== undefined)
    return "expected instances without heapLimitMb, which limits a worker";
  return undefined;
}
