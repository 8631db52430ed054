import { fileURLToPath } from "node:url";
import type { Backend, ModelDescription, WorkerProgram } from "@tritonjs/core/backend";
import type { InstanceDevice } from "@tritonjs/core/internal";
import {
  describeInWorker,
  OpenedWorker,
  planInstances,
  prepareWorkers,
  WorkerExecutor,
} from "@tritonjs/core/internal";
import { disableTelemetry } from "@tritonjs/core/internal/worker";
import { type InstanceHosting, TritonError } from "@tritonjs/protocol";
import { describeOnnxModel, lacksShapes, readOnnxFile } from "./describe-onnx-model.js";
import { NativeModel } from "./native-executor.js";
import { describeSession, PARALLEL_RUNS } from "./native-session.js";
import type { OnnxDescription } from "./onnx-file.js";
import { loadOrtApi, type OrtApi } from "./ort-c-api.js";
import {
  type ExecutionProvider,
  needsProcess,
  ONNX_ENGINES,
  type OnnxEngine,
  type OnnxRuntimeOptions,
  providersFor,
  type SessionData,
  sessionOptions,
} from "./ort-session.js";
import type { SessionTensors } from "./ort-tensors.js";

/**
 * Makes the backend of an ONNX model.
 *
 * @param ofModel hosting that the parameters of a model in a repository give its instances
 * @throws TritonError INVALID_ARG for an unknown engine
 */
export function onnxBackend(options: OnnxRuntimeOptions, ofModel: InstanceHosting = {}): Backend {
  const { model: given, onWarning, engine = "worker" } = options;
  assertEngine(engine);
  // Before workers start, because they get copies of the environment.
  disableTelemetry();
  const model = given instanceof URL ? fileURLToPath(given) : given;
  const warn = onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
  let file: OnnxDescription | undefined;
  let description: ModelDescription | undefined;
  let opened: OpenedWorker | undefined;
  const readFile = () => {
    file ??= readOnnxFile(model);
    return file;
  };
  const programOn = (device: InstanceDevice, instanceCount: number) =>
    sessionProgram(model, readFile(), device, instanceCount, options);
  const native = new NativeModel(() => programOn(ON_CPU, 1).program.data);
  const engineOf = (device: InstanceDevice, hosting: InstanceHosting | undefined, instanceCount: number) => {
    const { data } = programOn(device, instanceCount).program;
    return chooseEngine(engine, { ...data, hosting: { ...ofModel, ...hosting }, instanceCount });
  };
  const fromFile = (isNative: boolean) => describeOnnxModel(model, undefined, readFile(), isNative);
  return {
    backendName: "onnxruntime",
    platform: "onnxruntime_onnx",
    isolations: ["worker", "process"],
    endsBatches: engine !== "worker",
    describe: () => {
      description ??= lacksShapes(readFile())
        ? describeInWorker(
            new URL("./onnx-description-program.js", import.meta.url),
            programOn(ON_CPU, 1).program.data,
            DESCRIBE_WITHIN_MS,
            "the ONNX model",
          )
        : fromFile("api" in engineOf(ON_CPU, undefined, 1));
      return description;
    },
    async open(config) {
      const planned = planInstances(config);
      const [first] = planned;
      if (first === undefined) return fromFile(false);
      const device = { kind: first.kind, id: first.deviceId };
      const chosen = engineOf(device, first.group.hosting, planned.length);
      // Reports faults of the file without opening a session.
      if (!lacksShapes(readFile())) fromFile("api" in chosen);
      if ("api" in chosen) {
        const session = await native.open(chosen.api);
        return describeOnnxModel(model, describeSession(session), readFile(), true);
      }
      const { program, hosting } = programOn(device, planned.length);
      const place = { hosting: { ...hosting, ...ofModel, ...first.group.hosting } };
      opened = new OpenedWorker(config.name, program, place, (message) =>
        warn(`model '${config.name}': ${message}`),
      );
      prepareWorkers(program, place, planned.length - 1);
      const session = (await opened.description) as SessionTensors | undefined;
      return describeOnnxModel(model, session, readFile());
    },
    async close() {
      await opened?.close();
      await native.dropOpened();
    },
    createExecutor: (context) => {
      const { info, instanceCount, placement } = context;
      const { program, hosting } = programOn(info.device, instanceCount);
      const chosen = engineOf(info.device, context.hosting, instanceCount);
      if ("api" in chosen) {
        return native.executor(chosen.api, { ...context, hosting: { ...ofModel, ...context.hosting } });
      }
      if (chosen.reason !== undefined && placement.index === 0) {
        context.log.info(`model '${info.modelName}': ONNX Runtime runs in workers: ${chosen.reason}`);
        const { executionTimeoutMs, isolation } = { ...ofModel, ...context.hosting };
        if (executionTimeoutMs !== undefined && isolation !== "process") {
          context.log.warning(
            `model '${info.modelName}': executionTimeoutMs has no effect on a worker thread: set isolation 'process'`,
          );
        }
      }
      return new WorkerExecutor(program, {
        ...context,
        hosting: { ...hosting, ...ofModel, ...context.hosting },
        warn,
        opened: placement.index === 0 ? opened : undefined,
      });
    },
  };
}

function assertEngine(engine: unknown): void {
  if ((ONNX_ENGINES as readonly unknown[]).includes(engine)) return;
  throw new TritonError(
    "INVALID_ARG",
    `engine of the ONNX model: expected one of ${ONNX_ENGINES.join(", ")}, got '${String(engine)}'`,
    { reason: "INVALID_CONFIG" },
  );
}

const ON_CPU: InstanceDevice = { kind: "KIND_CPU", id: 0 };

/** A worker that does not answer within this time is ended. */
const DESCRIBE_WITHIN_MS = 120_000;

/** Properties of an instance that decide on its engine. */
interface EngineUse {
  readonly providers: readonly ExecutionProvider[];
  readonly hosting: Pick<InstanceHosting, "isolation" | "heapLimitMb">;
  readonly instanceCount: number;
}

/** The engine of an instance: ONNX Runtime's C interface, or the reason why it runs in a worker. */
type ChosenEngine = { readonly api: OrtApi } | { readonly reason: string | undefined };

/**
 * Chooses the engine of an instance.
 *
 * @throws TritonError if the engine `native` is asked for and cannot be used
 */
function chooseEngine(engine: OnnxEngine, use: EngineUse): ChosenEngine {
  if (engine === "worker") return { reason: undefined };
  const obstacle = obstacleOf(use);
  if (engine === "native") {
    if (obstacle === undefined) return { api: loadOrtApi() };
    throw new TritonError("INVALID_ARG", `engine 'native': ${obstacle}; use the engine 'worker'`, {
      reason: "INVALID_CONFIG",
    });
  }
  const { instanceCount } = use;
  if (obstacle !== undefined) return { reason: obstacle };
  if (instanceCount > PARALLEL_RUNS) {
    const poolSize = instanceCount + 2;
    return {
      reason:
        `libuv's pool runs ${PARALLEL_RUNS} batches at a time, and the model has ${instanceCount} instances; start the ` +
        `program with UV_THREADPOOL_SIZE=${poolSize}`,
    };
  }
  try {
    return { api: loadOrtApi() };
  } catch (error) {
    return { reason: TritonError.from(error).message };
  }
}

/** Why the engine `native` cannot run an instance. */
function obstacleOf({ providers, hosting }: EngineUse): string | undefined {
  const [first] = providers;
  const provider = typeof first === "string" ? first : first?.name;
  if (provider !== "cpu") return `expected the execution provider 'cpu', got '${provider}'`;
  if (hosting.isolation !== undefined)
    return `expected instances without isolation, got '${hosting.isolation}'`;
  if (hosting.heapLimitMb !== undefined)
    return "expected instances without heapLimitMb, which limits a worker";
  return undefined;
}

/** The program of a model's workers, and where it has to run. */
interface SessionProgram {
  readonly program: WorkerProgram & { readonly data: SessionData };
  readonly hosting: InstanceHosting;
}

/** The program of the workers that run a model on a device. */
function sessionProgram(
  model: string | Uint8Array,
  { inputs }: OnnxDescription,
  device: InstanceDevice,
  instanceCount: number,
  {
    model: _,
    engine: __,
    executionProviders,
    strictProviders = false,
    onWarning: ___,
    ...settings
  }: OnnxRuntimeOptions,
): SessionProgram {
  const providers = providersFor(device, executionProviders);
  const data: SessionData = {
    model,
    providers,
    strict: strictProviders,
    sessionOptions: sessionOptions(settings, instanceCount),
    scalars: inputs.filter(({ dims }) => dims?.length === 0).map(({ name }) => name),
    ranksUnknown: inputs.filter(({ dims }) => dims === undefined).map(({ name }) => name),
  };
  const program = {
    entry: new URL("./session-worker.js", import.meta.url),
    data,
    interruptible: false,
    tensorsOnly: true,
    returnsInputs: true,
    reusesThread: true,
  };
  return { program, hosting: needsProcess(providers) ? { isolation: "process" } : {} };
}
