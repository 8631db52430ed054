import { type Isolation, TritonError } from "@tritonjs/protocol";
import { realClock } from "../../clock/clock.js";

import type { Backend, BackendFactory, ModelSource } from "../../instance/backend.js";
import { Log } from "../../observe/log/log.js";
import { hostingOf, loadTimeoutMs } from "../hosting-parameters.js";
import { findModelFile } from "../model-file.js";
import { completeWithPython } from "./complete-with-python.js";
import { type FoundPython, findPython } from "./find-python.js";
import { FoundPythonExecutor } from "./found-python-executor.js";
import { MergedBatchExecutor } from "./merged-batch-executor.js";
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
  assertStubName(source.name);
  return pythonModel(source, { path: await modelFile(source), backendName: "python" });
};

/** A program that runs models, and the backend that it is part of. */
export interface PythonProgram {
  /** The file with `TritonPythonModel`. */
  readonly path: string;
  readonly backendName: string;
  /** True if models of the backend share the program, so that it is outside of their directories. */
  readonly isShared?: boolean;
  /** True if it gets the requests of a batch as one. */
  readonly takesBatches?: boolean;
}

/**
 * The backend that runs a model with a Python program: that of the model, or the one that models of a backend share.
 *
 * @throws TritonError INVALID_ARG for settings and parameters of the model that Python cannot have
 */
export async function pythonModel(
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
