import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { HostPolicy } from "@tritonjs/core";
import {
  type Backend,
  type BackendFactory,
  type Executor,
  type ExecutorContext,
  findModelFile,
  hostingOf,
  type ModelDescription,
  type ModelLocation,
  type ModelSource,
  type WorkerProgram,
} from "@tritonjs/core/backend";
import {
  describeInWorker,
  heldByInstance,
  type InstanceDevice,
  type InstanceInfo,
  notFound,
  OpenedWorker,
  planInstances,
  prepareWorkers,
  WorkerExecutor,
} from "@tritonjs/core/internal";
import { assertInside, disableTelemetry } from "@tritonjs/core/internal/worker";
import {
  type ArrayOf,
  assertOptions,
  type DataType,
  type DescribedTensor,
  errorFor,
  type InstanceHosting,
  type Isolation,
  type ModelConfig,
  type Tensor,
  TritonError,
  tensorFromValue,
  toNdArray,
} from "@tritonjs/protocol";
import type { InferenceSession } from "onnxruntime-node";
import { describeOnnxModel, lacksShapes, readOnnxFile, type SessionTensors } from "./describe-onnx-model.js";
import { NativeExecutor } from "./native-executor.js";
import { describeSession, NativeModel, PARALLEL_RUNS } from "./native-session.js";
import { checkExternalData, type OnnxDescription } from "./onnx-file.js";
import {
  type ExecutionProvider,
  ONNX_ENGINES,
  ONNX_OPTION_TYPES,
  type OnnxEngine,
  type OnnxRuntimeOptions,
  onnxOptionsOf,
  quoted,
  type SessionData,
} from "./onnx-options.js";
import { loadOrtApi, type OrtApi } from "./ort-c-api.js";
import { needsProcess, openSessionOf, providerName, providersFor, sessionOptions } from "./ort-session.js";
import { fromResults, sessionTensors, toFeeds } from "./ort-tensors.js";

export type { ExecutionProvider, OnnxEngine, OnnxRuntimeOptions } from "./onnx-options.js";

/**
 * A backend that runs an ONNX model with ONNX Runtime. By default each instance is a worker thread with a session of
 * its own; `engine` has the alternative.
 * Inputs, outputs and whether the model can batch (all first dimensions variable) come from the file when `bind` does
 * not get them. Where the file leaves out the shape of an output, `bind` waits for a worker in which ONNX Runtime
 * infers it.
 *
 * @throws TritonError at `bind` for a missing file (NOT_FOUND), a file that is not an ONNX model (INVALID_ARG), types
 * that cannot pass through Node (UNSUPPORTED), and shapes that cannot be inferred because the model does not load
 * (INVALID_ARG).
 * @example
 * ```ts
 * triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: "iris.onnx" }) });
 * ```
 */
export function onnxruntime(options: OnnxRuntimeOptions): Backend {
  assertOptions("onnxruntime()", options, ONNX_OPTION_TYPES, {}, ["model"]);
  return new OnnxBackend(options);
}

const WORKER = new URL("./ort-session.js", import.meta.url);

/** Runs an ONNX model, each instance in a worker or through ONNX Runtime's C interface. */
class OnnxBackend implements Backend {
  readonly platform: string;
  readonly isolations: readonly Isolation[] = ["worker", "process"];
  readonly endsBatches: boolean;
  readonly #model: string | Uint8Array;
  readonly #engine: OnnxEngine;
  readonly #native = new NativeModel(() => this.#sessionData(ON_CPU, 1));
  #file: OnnxDescription | undefined;
  #description: ModelDescription | undefined;
  #opened: OpenedWorker | undefined;
  #saidWasm = false;

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
      throw errorFor("INVALID_CONFIG", text);
    }
    // Before workers start, because they get copies of the environment.
    disableTelemetry();
    this.#model = model instanceof URL ? fileURLToPath(model) : model;
    this.#engine = engine;
    this.platform = backendName === "openvino" ? "" : "onnxruntime_onnx";
    this.endsBatches = engine === "native" || engine === "auto";
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
    if ("api" in chosen) {
      const session = await this.#native.open(chosen.api);
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
      onReport: (reason) => this.#isWasm(reason as string, context),
      opened: placement.index === 0 ? this.#opened : undefined,
    });
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
      // The memory of WebAssembly never shrinks.
      reusesThread: this.#engine !== "wasm",
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
      isWasm: this.#engine === "wasm",
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
    if (this.#engine === "wasm") {
      const provider = providerName(providers[0]!);
      if (provider === "cpu" || provider === "wasm") return { reason: undefined };
      const text = `engine 'wasm': expected the execution provider 'cpu', got '${provider}'; use the engine 'worker'`;
      throw errorFor("INVALID_CONFIG", text);
    }
    const obstacle = obstacleOf(providers, { ...this.hosting, ...hosting });
    if (this.#engine === "native") {
      if (obstacle === undefined) return { api: loadOrtApi() };
      throw errorFor("INVALID_CONFIG", `engine 'native': ${obstacle}; use the engine 'worker'`);
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

/** The options of {@link openSession}: those of `onnxruntime` without the model and the engine. */
export type OnnxSessionOptions = Omit<OnnxRuntimeOptions, "model" | "engine">;

/**
 * Opens an ONNX model on the device of an instance, for a callback to run: with `cuda` on the instance's GPU, or on the
 * CPU. `executionProviders` selects others. The first call of an instance opens the session; later calls return the
 * same session. The session ends with the instance.
 *
 * A session runs on the thread of the callback and blocks it. A callback that runs models therefore belongs in a
 * module, whose instances are workers.
 *
 * @param model path of the `.onnx` file, or its bytes
 * @param instance the context of a callback, or the argument of `initialize`
 * @throws TritonError NOT_FOUND for a missing file, INVALID_ARG for a file that does not load, UNSUPPORTED for types
 * that cannot pass through Node, UNAVAILABLE when `onnxruntime-node` is not installed.
 * @example
 * ```ts
 * export default batch(async ({ x }, context) => {
 *   const session = await openSession(new URL("./iris.onnx", import.meta.url), context);
 *   return session.run<{ scores: "FP32" }>({ measurements: x });
 * });
 * ```
 */
export function openSession(
  model: string | URL | Uint8Array,
  instance: Pick<InstanceInfo, "device">,
  options: OnnxSessionOptions = {},
): Promise<OnnxSession> {
  const file = model instanceof URL ? fileURLToPath(model) : model;
  const { onWarning, ...rest } = options;
  const key = `onnx ${typeof file === "string" ? file : digestOf(file)} ${JSON.stringify(rest)}`;
  return heldByInstance(
    instance,
    key,
    () => OnnxSession.open(file, instance, options),
    (session) => session.release(),
  );
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** An ONNX model that is open on the device of an instance. */
export class OnnxSession {
  readonly #session: InferenceSession;
  readonly #scalars: ReadonlySet<string>;

  private constructor(
    session: InferenceSession,
    /** The execution provider that the session runs on. */
    readonly provider: string,
    /** Tensors as the file declares them, with all their dimensions. */
    readonly inputs: readonly DescribedTensor[],
    readonly outputs: readonly DescribedTensor[],
  ) {
    this.#session = session;
    const scalars = inputs.filter(({ shape, rankUnknown }) => shape.length === 0 && !rankUnknown);
    this.#scalars = new Set(scalars.map(({ name }) => name));
  }

  /** @internal */
  static async open(
    model: string | Uint8Array,
    { device }: Pick<InstanceInfo, "device">,
    { executionProviders, strictProviders = false, onWarning, ...settings }: OnnxSessionOptions,
  ): Promise<OnnxSession> {
    // Reports faults of the file without opening a session.
    const described = readOnnxFile(model);
    if (!lacksShapes(described)) describeOnnxModel(model, undefined, described);
    const data = {
      model,
      providers: providersFor(device, executionProviders),
      strict: strictProviders,
      sessionOptions: sessionOptions(settings, 1),
      scalars: [],
      ranksUnknown: [],
    };
    const warn = onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
    const { session, provider } = await openSessionOf(data, warn);
    const { inputs, outputs } = describeOnnxModel(model, sessionTensors(session), described);
    return new OnnxSession(session, provider, inputs, outputs);
  }

  /**
   * Runs the model once.
   *
   * @typeParam O the data types of the outputs, by name
   * @param inputs ndarrays, typed arrays or nested arrays by name
   * @param names outputs to compute; all by default
   * @throws TritonError INVALID_ARG for unknown or invalid inputs; errors of ONNX Runtime pass through
   */
  async run<O extends Readonly<Record<string, DataType>> = Readonly<Record<string, DataType>>>(
    inputs: Readonly<Record<string, unknown>>,
    names: readonly string[] = this.outputs.map(({ name }) => name),
  ): Promise<{ [Name in keyof O]: ArrayOf<O[Name]> }> {
    const feeds = toFeeds(this.#tensors(inputs), this.#scalars);
    const results = fromResults(await this.#session.run(feeds, names));
    const arrays = [...results].map(([name, tensor]) => [name, toNdArray(tensor)]);
    return Object.fromEntries(arrays) as { [Name in keyof O]: ArrayOf<O[Name]> };
  }

  /**
   * Runs the model once on tensors, without copies. The outputs may be inputs of the next run.
   *
   * @param inputs tensors by name, with all their dimensions
   * @param names outputs to compute
   * @throws errors of ONNX Runtime
   */
  async runTensors(
    inputs: ReadonlyMap<string, Tensor>,
    names: readonly string[] = this.outputs.map(({ name }) => name),
  ): Promise<Map<string, Tensor>> {
    return fromResults(await this.#session.run(toFeeds(inputs, this.#scalars), names));
  }

  /** @internal */
  release(): Promise<void> {
    return this.#session.release();
  }

  #tensors(given: Readonly<Record<string, unknown>>): Map<string, Tensor> {
    const unknown = Object.keys(given).find((name) => !this.inputs.some((input) => input.name === name));
    const missing = this.inputs.find(({ name }) => given[name] === undefined);
    if (unknown !== undefined || missing !== undefined) {
      const got = Object.keys(given).join(", ");
      const expected = this.inputs.map(({ name }) => name).join(", ");
      throw errorFor("INVALID_CONFIG", `inputs of the ONNX model: expected [${expected}], got [${got}]`);
    }
    return new Map(
      this.inputs.map(({ name, dtype, shape }) => [
        name,
        tensorFromValue(given[name], {
          what: `input '${name}' of the ONNX model`,
          datatype: dtype,
          shape,
          takesScalar: true,
        }),
      ]),
    );
  }
}

/** The backend `onnxruntime` for models of a repository: `<version>/model.onnx`, or a directory with such a file. */
const onnxRuntimeBackend: BackendFactory = (source) => openRepositoryModel(source);

async function openRepositoryModel(source: ModelSource, backendName?: string): Promise<OnnxBackend> {
  const model = await modelFile(source);
  await checkExternalData(source.directory, model);
  const { config, settings, warn } = source;
  const options = { model, onWarning: warn, ...onnxOptionsOf(config, settings, warn) };
  const endsBatches = options.engine === "native" || options.engine === "auto";
  const hosting = hostingOf(source, ["worker", "process"], !endsBatches);
  return new OnnxBackend(options, hosting, backendName);
}

async function modelFile(source: ModelLocation): Promise<string> {
  const { path, isDirectory } = await findModelFile(source, ["model.onnx"], notStatted);
  if (!isDirectory) return path;
  const inside = join(path, "model.onnx");
  const found = await stat(inside).catch(() => undefined);
  if (!found?.isFile()) throw notFound(inside, source.name);
  await assertInside(source.directory, inside);
  return inside;
}

/** Triton's onnxruntime backend first checks whether the file is a directory. */
function notStatted(path: string): TritonError {
  return errorFor("FILE_NOT_READABLE", `failed to stat file ${path}`);
}

/** Parameters of Triton's openvino backend that ONNX Runtime has under another name. */
const MAPPED: Readonly<Record<string, string>> = { INFERENCE_NUM_THREADS: "intra_op_thread_count" };

/** Its other parameters. They choose devices and plans of OpenVINO, or work around its fixed batch sizes. */
const IGNORED: readonly string[] = [
  "TARGET_DEVICE",
  "PERFORMANCE_HINT",
  "NUM_STREAMS",
  "COMPILATION_NUM_THREADS",
  "HINT_BF16",
  "CPU_EXTENSION_PATH",
  "SKIP_OV_DYNAMIC_BATCHSIZE",
  "ENABLE_BATCH_PADDING",
  "RESHAPE_IO_LAYERS",
];

/**
 * The backend `openvino` for models of a repository. ONNX Runtime runs its ONNX models: `default_model_filename:
 * "model.onnx"`. Other models are refused; the reason names the conversion.
 */
const openvinoBackend: BackendFactory = async (source) => {
  const { config, name } = source;
  assertPlaced(config);
  const { path } = await findModelFile(source, ["model.xml"]);
  if (!path.endsWith(".onnx")) throw refused(source, path);
  const { parameters, ignored } = forOnnxRuntime(config);
  source.warn(`model '${name}': ONNX Runtime runs this model of backend 'openvino'`);
  if (ignored.length > 0) {
    source.warn(`model '${name}': parameters ${quoted(ignored)} of OpenVINO have no effect in ONNX Runtime`);
  }
  return openRepositoryModel({ ...source, config: { ...config, parameters } }, "openvino");
};

function assertPlaced({ instanceGroup }: ModelConfig): void {
  if (instanceGroup.every(({ kind }) => kind === "KIND_CPU" || kind === "KIND_AUTO")) return;
  throw errorFor("INVALID_CONFIG", "Triton OpenVINO backend supports only Kind CPU and AUTO");
}

/** The parameters as ONNX Runtime has them, and the names of the parameters without effect there. */
function forOnnxRuntime({ parameters }: ModelConfig) {
  const entries = Object.entries(parameters)
    .filter(([key]) => !IGNORED.includes(key))
    .map(([key, value]) => [Object.hasOwn(MAPPED, key) ? MAPPED[key]! : key, value] as const);
  return {
    parameters: Object.fromEntries(entries),
    ignored: IGNORED.filter((key) => Object.hasOwn(parameters, key)),
  };
}

const PADDLE = "paddle2onnx --model_dir <directory> --model_filename model.pdmodel --save_file model.onnx";
const SAVED_MODEL = "python -m tf2onnx.convert --saved-model <directory> --output model.onnx";

/** The error for a file that only OpenVINO reads: what to convert, and by which command. */
function refused({ name }: ModelSource, path: string): TritonError {
  const how = path.endsWith(".pdmodel")
    ? `convert it: ${PADDLE}`
    : path.endsWith(".saved_model")
      ? `convert it: ${SAVED_MODEL}`
      : "no program converts OpenVINO's own format back, so export the model that it was made from: torch.onnx.export, " +
        `${SAVED_MODEL}, ${PADDLE}`;
  const text =
    `model '${name}': '${path}' runs only in OpenVINO, which has no package for Node that installs without a download; ` +
    `${how}; then put model.onnx into the version directory and set default_model_filename: "model.onnx"`;
  return errorFor("MODEL_NOT_SUPPORTED", text);
}

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  onnxruntime: onnxRuntimeBackend,
  openvino: openvinoBackend,
};
