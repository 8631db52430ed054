import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Backend, BackendFactory } from "@tritonjs/core/backend";
import { assertOptions, errorFor, optionTypes } from "@tritonjs/protocol";
import {
  assertPythonCanRun,
  configParameters,
  describeWithPython,
  LOAD_TIMEOUT_SECONDS,
  STUB_TIMEOUT_SECONDS,
} from "./complete-with-python.js";
import { PythonExecutor } from "./python-executor.js";
import type { PythonSettings } from "./python-session.js";
import { pythonBackend, pytorchBackend } from "./repository-backends.js";

/** Options of {@link python}. */
export interface PythonOptions {
  /** Path of a `model.py` with a class `TritonPythonModel`. */
  readonly model: string | URL;
  /**
   * The program that runs the model: a path, or a name to look up in PATH. It must be Python 3.8 or newer, with numpy.
   * @default the environment variable TRITONJS_PYTHON, or `python3`
   */
  readonly python?: string;
  /** `parameters` of the model's configuration, as their `string_value`. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Environment variables of its processes, in addition to those of this process; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** How long Python may take to start, and the model to finalize, in seconds. @default 30 */
  readonly stubTimeoutSeconds?: number;
  /** How long the model may take to load in each instance, in seconds. @default 3600 */
  readonly loadTimeoutSeconds?: number;
}

const PYTHON_OPTION_TYPES = optionTypes<PythonOptions>({
  model: ["object", "string"],
  python: "string",
  parameters: "object",
  env: "object",
  stubTimeoutSeconds: "number",
  loadTimeoutSeconds: "number",
});

/**
 * A backend that runs an unchanged model of Triton's Python backend: a `model.py` with a class `TritonPythonModel`.
 * Each instance is a process of `python3` with numpy. Its `auto_complete_config` adds to the configuration that `bind`
 * gets: inputs, outputs, the largest batch, and whether the model is decoupled.
 *
 * @throws TritonError at `bind` INVALID_ARG for invalid options, NOT_FOUND for a missing file, INTERNAL for a file that
 * cannot be imported and for errors that its `auto_complete_config` raises; UNSUPPORTED on Windows.
 * @example
 * ```ts
 * triton.bind({ modelName: "add", inferFunc: python({ model: "models/add/1/model.py" }) });
 * ```
 */
export function python(options: PythonOptions): Backend {
  assertOptions("python()", options, PYTHON_OPTION_TYPES, {}, ["model"]);
  assertPythonCanRun();
  const settings = settingsOf(options);
  const { parameters = {} } = options;
  return {
    backendName: "python",
    platform: "",
    isolations: ["process"],
    describe: () => {
      if (existsSync(settings.path)) return describeWithPython({ settings, parameters });
      throw errorFor("MODEL_FILES_NOT_FOUND", `cannot find the Python model '${settings.path}'`);
    },
    createExecutor: ({ info, ...context }) => {
      const { modelConfig } = info;
      const all = { ...configParameters(parameters), ...modelConfig.parameters };
      return new PythonExecutor(settings, modelDirectory(settings.path), {
        ...context,
        info: { ...info, modelConfig: { ...modelConfig, parameters: all } },
      });
    },
  };
}

function settingsOf(options: PythonOptions): PythonSettings {
  const { model, env, stubTimeoutSeconds = STUB_TIMEOUT_SECONDS } = options;
  const { loadTimeoutSeconds = LOAD_TIMEOUT_SECONDS } = options;
  const path = resolve(model instanceof URL ? fileURLToPath(model) : model);
  const problems = Object.entries({ stubTimeoutSeconds, loadTimeoutSeconds })
    .filter(([, seconds]) => !(seconds > 0 && seconds < 2 ** 31 / 1000))
    .map(([name, seconds]) => `${name}: expected a number above 0, got ${seconds}`);
  if (!path.endsWith(".py")) problems.push(`model: expected a '.py' file, got '${path}'`);
  if (problems.length > 0) throw errorFor("INVALID_OPTION", `python(): ${problems.join("; ")}`);
  return {
    python: options.python ?? process.env.TRITONJS_PYTHON ?? "python3",
    path,
    env,
    stubTimeoutMs: 1000 * stubTimeoutSeconds,
    loadTimeoutMs: 1000 * loadTimeoutSeconds,
  };
}

/**
 * The model's directory: `<model>` in the layout of a repository, `<model>/<version>/model.py`; otherwise the directory
 * of the file.
 */
function modelDirectory(path: string): string {
  const directory = dirname(path);
  return /^[1-9]\d*$/.test(basename(directory)) ? dirname(directory) : directory;
}

/** @internal */
export { pythonAgent } from "./python-agent.js";
/** @internal */
export { sharedModel } from "./repository-backends.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  python: pythonBackend,
  pytorch: pytorchBackend,
};
