import { type Isolation, TritonError } from "@tritonjs/protocol";
import { realClock } from "../../clock/clock.js";

import type { BackendFactory, ExecutorContext, ModelSource } from "../../instance/backend.js";
import { Log } from "../../observe/log/log.js";
import { hostingOf, loadTimeoutMs } from "../hosting-parameters.js";
import { findModelFile } from "../model-file.js";
import { completeWithPython } from "./complete-with-python.js";
import { type FoundPython, findPython } from "./find-python.js";
import { PythonExecutor } from "./python-executor.js";
import type { PythonSettings } from "./python-session.js";
import { assertPythonCanRun, LOAD_TIMEOUT_SECONDS, STUB_TIMEOUT_SECONDS } from "./settings.js";

const ISOLATIONS: readonly Isolation[] = ["process"];

/** Triton's list. A model's name is part of the names of its processes. */
const SHELL_CHARACTERS = /[;|&$`<>()[\]{}\\"'*?~#!]/;

/**
 * The backend `python` for models of a repository: `<version>/model.py` with a class `TritonPythonModel` that imports
 * `triton_python_backend_utils`, as for Triton. Each instance is a child process of `python3` with numpy.
 */
export const pythonBackend: BackendFactory = async (source) => {
  assertPythonCanRun();
  if (SHELL_CHARACTERS.test(source.name)) {
    throw new TritonError("INVALID_ARG", "Invalid stub name: contains invalid characters", {
      reason: "INVALID_CONFIG",
    });
  }
  const withinMs = loadTimeoutMs(source, LOAD_TIMEOUT_SECONDS);
  const hosting = hostingOf(source, ISOLATIONS, false);
  if (hosting.heapLimitMb !== undefined) {
    throw new TritonError(
      "INVALID_ARG",
      `model '${source.name}' has heap_limit_mb, which has no effect on Python: remove it`,
      { reason: "INVALID_CONFIG" },
    );
  }
  const path = await modelFile(source);
  const stubTimeoutMs = 1000 * stubTimeoutSeconds(source);
  const first = await findPython(source, withinMs);
  // The first instance uses the Python that completed the configuration.
  let spare: FoundPython | undefined = first;
  const find = async () => {
    const found = spare;
    spare = undefined;
    return found ?? findPython(source, withinMs);
  };
  const settings: PythonSettings = { python: first.program, path, stubTimeoutMs, loadTimeoutMs: withinMs };
  return {
    backendName: "python",
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
      return new FoundPythonExecutor(settings, source.directory, told, find);
    },
  };
};

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
