import { fileURLToPath } from "node:url";
import {
  type Backend,
  type BackendFactory,
  divideOutputs,
  type ExecutableRequest,
  type Execution,
  type ExecutionResult,
  type ExecutorContext,
  findModelFile,
  hostingOf,
  joinInputs,
  type ModelSource,
} from "@tritonjs/core/backend";
import type { Clock, ModelCaller, TensorCaller, Tensors } from "@tritonjs/core/internal";
import { loadTimeoutMs, OutputChecker, totalRows, withInputs } from "@tritonjs/core/internal";
import { Log, realClock } from "@tritonjs/core/internal/worker";
import { type Isolation, NO_PARAMETERS, type Tensor, TritonError } from "@tritonjs/protocol";
import {
  assertPythonCanRun,
  completeWithPython,
  LOAD_TIMEOUT_SECONDS,
  STUB_TIMEOUT_SECONDS,
} from "./complete-with-python.js";
import { type FoundPython, findPython } from "./find-python.js";
import { PythonExecutor } from "./python-executor.js";
import type { PythonSettings } from "./python-session.js";

const ISOLATIONS: readonly Isolation[] = ["process"];

/** Triton's list. A model's name is part of the names of its processes. */
const SHELL_CHARACTERS = /[;|&$`<>()[\]{}\\"'*?~#!]/;

/**
 * The backend `python` for models of a repository: `<version>/model.py` with a class `TritonPythonModel` that imports
 * `triton_python_backend_utils`, as for Triton. Each instance is a child process of `python3` with numpy.
 */
export const pythonBackend: BackendFactory = async (source) => {
  assertPythonCanRun();
  assertStubName(source.name);
  return pythonModel(source, { path: await modelFile(source), backendName: "python" });
};

/** A program that runs models, and the backend that it is part of. */
interface PythonProgram {
  /** The file with `TritonPythonModel`. */
  readonly path: string;
  readonly backendName: string;
  /** True if models of the backend share the program, so that it is outside of their directories. */
  readonly isShared?: boolean;
  /** True if it gets the requests of a batch as one. */
  readonly takesBatches?: boolean;
}

/** The backend of a backend directory whose program `model.py` all its models share. */
export function sharedModel(source: ModelSource, path: string, backendName: string): Promise<Backend> {
  return pythonModel(source, { path, backendName, isShared: true });
}

/**
 * The backend that runs a model with a Python program: that of the model, or the one that models of a backend share.
 *
 * @throws TritonError INVALID_ARG for settings and parameters of the model that Python cannot have
 */
async function pythonModel(
  source: ModelSource,
  { path, backendName, isShared = false, takesBatches = false }: PythonProgram,
): Promise<Backend> {
  assertPythonCanRun();
  assertStubName(source.name);
  const withinMs = loadTimeoutMs(source, LOAD_TIMEOUT_SECONDS);
  const hosting = hostingOf(source, ISOLATIONS, false);
  if (hosting.heapLimitMb !== undefined) {
    throw new TritonError(
      "INVALID_ARG",
      `model '${source.name}' has heap_limit_mb, which has no effect on Python: remove it`,
      { reason: "INVALID_CONFIG" },
    );
  }
  const stubTimeoutMs = 1000 * stubTimeoutSeconds(source);
  const first = await findPython(source, withinMs);
  // The first instance uses the Python that completed the configuration.
  let spare: FoundPython | undefined = first;
  const find = async () => {
    const found = spare;
    spare = undefined;
    return found ?? findPython(source, withinMs);
  };
  const settings: PythonSettings = {
    python: first.program,
    path,
    stubTimeoutMs,
    loadTimeoutMs: withinMs,
    ...(isShared && { backend: { name: backendName, modelDirectory: source.versionDirectory } }),
  };
  return {
    backendName,
    platform: "",
    isolations: ISOLATIONS,
    describe: () => undefined,
    completeConfig: async (config) => {
      try {
        await completeWithPython(config, settings, { clock: realClock, log: logOf(source) });
      } catch (error) {
        await first.release();
        throw error;
      }
    },
    createExecutor: (context) => {
      const told = { ...context, hosting: { ...hosting, ...context.hosting } };
      const Kind = takesBatches ? MergedBatchExecutor : FoundPythonExecutor;
      return new Kind(settings, source.directory, told, find);
    },
  };
}

function assertStubName(name: string): void {
  if (!SHELL_CHARACTERS.test(name)) return;
  throw new TritonError("INVALID_ARG", "Invalid stub name: contains invalid characters", {
    reason: "INVALID_CONFIG",
  });
}

/** Logs the lines that a model prints while it completes its configuration. */
function logOf({ warn }: ModelSource): Log {
  return new Log({ error: warn, warn, info: () => {}, debug: () => {} });
}

function stubTimeoutSeconds({ settings }: ModelSource): number {
  const text = settings["stub-timeout-seconds"];
  const seconds = text === undefined ? STUB_TIMEOUT_SECONDS : Number(text);
  if (seconds > 0 && Number.isFinite(seconds)) return seconds;
  throw new TritonError("INVALID_ARG", "stub-timeout-seconds can't be smaller than or equal to zero.", {
    reason: "INVALID_CONFIG",
  });
}

async function modelFile(source: ModelSource): Promise<string> {
  const { defaultModelFilename } = source.config;
  const name = defaultModelFilename === "" ? "model.py" : defaultModelFilename;
  if (!name.endsWith(".py")) {
    throw new TritonError(
      "INVALID_ARG",
      `Model name must end with '.py'. Model name is "${defaultModelFilename}".`,
      { reason: "INVALID_CONFIG" },
    );
  }
  const missing = (path: string) =>
    new TritonError("INTERNAL", `model.py does not exist in the model repository path: ${path}`, {
      reason: "FILE_NOT_READABLE",
    });
  const { path, isDirectory } = await findModelFile(source, ["model.py"], missing);
  if (isDirectory) throw missing(path);
  return path;
}

const PROGRAM = fileURLToPath(new URL("../../python/tritonjs_torch/model.py", import.meta.url));

/** Parameters without effect in a process of its own, with the reasons. */
const NO_EFFECT: Readonly<Record<string, string>> = {
  ENABLE_WEIGHT_SHARING: "each instance is a process with weights of its own",
};

/**
 * The backend `pytorch` for models of a repository: `<version>/model.pt`, a TorchScript file, or with
 * `runtime: "model.py"` a module with a class of `torch.nn.Module`. Each instance is a process of `python3` with torch,
 * which gets the requests of a batch as one.
 */
export const pytorchBackend: BackendFactory = async (source) => {
  const { name, config } = source;
  if (config.platform === "torch_aoti") throw notArchive(name);
  if (config.runtime === "model.py") await findModelFile(source, ["model.py", "model.pt"]);
  else await findModelFile(source, ["model.pt"]);
  warnOfUnused(source);
  const program = { path: PROGRAM, backendName: "pytorch", isShared: true, takesBatches: true };
  return { ...(await pythonModel(source, program)), platform: "pytorch_libtorch" };
};

function warnOfUnused({ name, config, warn }: ModelSource): void {
  for (const [key, why] of Object.entries(NO_EFFECT)) {
    if (Object.hasOwn(config.parameters, key))
      warn(`model '${name}': parameter '${key}' has no effect: ${why}`);
  }
}

function notArchive(name: string): TritonError {
  return new TritonError(
    "UNSUPPORTED",
    `model '${name}' is compiled ahead of time (torch_aoti, model.pt2), which is not supported: save it as TorchScript, ` +
      "torch.jit.trace(model, example).save('model.pt'), and set platform: \"pytorch_libtorch\"",
    { reason: "MODEL_NOT_SUPPORTED" },
  );
}

/** Runs an instance with the Python that is found for it. An unpacked environment lives as long as the instance. */
class FoundPythonExecutor extends PythonExecutor {
  #python: FoundPython | undefined;
  #stopped = false;

  /** @param find finds the Python, and unpacks its environment if necessary */
  constructor(
    settings: PythonSettings,
    directory: string,
    context: ExecutorContext,
    private readonly find: () => Promise<FoundPython>,
  ) {
    super(settings, directory, context);
  }

  override async start(): Promise<void> {
    if (this.#python === undefined) {
      const found = await this.find();
      if (this.#stopped) {
        await found.release();
        throw new TritonError("UNAVAILABLE", "the model was stopped while it was loading", {
          reason: "MODEL_STOPPED",
        });
      }
      this.#python = found;
      this.settings = { ...this.settings, python: found.program };
    }
    await super.start();
  }

  override async stop(): Promise<void> {
    this.#stopped = true;
    await super.stop();
    await this.#python?.release();
  }
}

/**
 * Runs a Python program that gets the requests of a batch as one request with all rows, and answers them at once. The
 * inputs are joined and the outputs split here, by the rules of the configuration: ragged inputs, batch inputs and
 * batch outputs among them.
 */
class MergedBatchExecutor extends FoundPythonExecutor {
  readonly #checker: OutputChecker;

  constructor(
    settings: PythonSettings,
    directory: string,
    context: ExecutorContext,
    find: () => Promise<FoundPython>,
  ) {
    super(settings, directory, { ...context, checker: new UncheckedOutputs(context.info.modelConfig) }, find);
    this.#checker = context.checker;
  }

  override async execute(execution: Execution): Promise<readonly ExecutionResult[]> {
    const results = await super.execute(new MergedExecution(execution, joinInputs(execution)));
    const [outputs] = results ?? [];
    if (TritonError.is(outputs)) throw outputs;
    const rows = totalRows(execution.requests);
    return divideOutputs(execution, this.#checker.check(outputs as Map<string, Tensor>, rows, [], true));
  }
}

/** Leaves the outputs of a whole batch unchecked: they are checked before they are split. */
class UncheckedOutputs extends OutputChecker {
  override check(outputs: Map<string, Tensor>): Map<string, Tensor> {
    return outputs;
  }
}

/** An execution as one request. */
class MergedExecution implements Execution {
  readonly requests: readonly [ExecutableRequest];
  readonly decoupled = false;

  constructor(
    private readonly whole: Execution,
    inputs: Tensors,
  ) {
    const first = whole.requests[0]!;
    const rows = totalRows(whole.requests);
    const ofWhole = { parameters: NO_PARAMETERS, requestedOutputs: [], batchSize: rows };
    this.requests = [Object.assign(withInputs(first, inputs, rows), ofWhole)];
  }

  get signal(): AbortSignal {
    return this.whole.signal;
  }

  get models(): ModelCaller & Partial<TensorCaller> {
    return this.whole.models;
  }

  get clock(): Clock {
    return this.whole.clock;
  }

  inputsReady(): void {
    this.whole.inputsReady();
  }

  outputsReady(): void {
    this.whole.outputsReady();
  }

  postponed(): void {
    this.whole.postponed?.();
  }

  /** The batch runs to its end, whichever requests are cancelled. */
  watch(): void {}

  isOpen(): boolean {
    return true;
  }

  writable(): undefined {
    return undefined;
  }

  send(): void {}

  sendError(): void {}

  finish(): void {}

  reschedule(): void {}
}
