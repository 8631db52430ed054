import { existsSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { TritonError } from "@tritonjs/protocol";
import type { Backend } from "../../instance/backend.js";
import { describeWithPython } from "./describe-with-python.js";
import { PythonExecutor } from "./python-executor.js";
import type { PythonSettings } from "./python-session.js";
import {
  assertPythonCanRun,
  configParameters,
  LOAD_TIMEOUT_SECONDS,
  STUB_TIMEOUT_SECONDS,
} from "./settings.js";

/** What {@link python} takes. */
export interface PythonOptions {
  /** Path of a `model.py` with a class `TritonPythonModel`. */
  readonly model: string | URL;
  /**
   * The program that runs it: a path, or a name to be found in PATH. Python 3.8 or newer, with numpy.
   * @default the environment variable TRITONJS_PYTHON, or `python3`
   */
  readonly python?: string;
  /** What the model finds in `parameters` of its configuration, as their `string_value`. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Environment variables of its processes, beside those of this one; undefined takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** How long Python may take to start, and the model to finalize. @default 30 */
  readonly stubTimeoutSeconds?: number;
  /** How long the model may take to load, in each instance. @default 3600 */
  readonly loadTimeoutSeconds?: number;
}

/**
 * A backend that runs a model of Triton's Python backend as it is: a `model.py` with a class `TritonPythonModel`. Each
 * instance is a process of `python3` with numpy. What its `auto_complete_config` says comes to what `bind` is told: inputs,
 * outputs, the largest batch, and whether it is decoupled.
 *
 * @throws TritonError at `bind` INVALID_ARG for options that cannot be, NOT_FOUND for a missing file, INTERNAL for one
 * that cannot be imported and for what its `auto_complete_config` raises; UNSUPPORTED on Windows.
 * @example
 * ```ts
 * triton.bind({ modelName: "add", inferFunc: python({ model: "models/add/1/model.py" }) });
 * ```
 */
export function python(options: PythonOptions): Backend {
  assertPythonCanRun();
  const settings = settingsOf(options);
  const { parameters = {} } = options;
  return {
    backendName: "python",
    platform: "",
    isolations: ["process"],
    describe: () => {
      if (existsSync(settings.path)) return describeWithPython({ settings, parameters });
      throw new TritonError("NOT_FOUND", `cannot find the Python model '${settings.path}'`, {
        reason: "MODEL_FILES_NOT_FOUND",
      });
    },
    createExecutor: ({ info, ...context }) => {
      const { modelConfig } = info;
      const all = { ...configParameters(parameters), ...modelConfig.parameters };
      const told = { ...info, modelConfig: { ...modelConfig, parameters: all } };
      return new PythonExecutor(settings, modelDirectory(settings.path), { ...context, info: told });
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
  if (problems.length > 0)
    throw new TritonError("INVALID_ARG", `python(): ${problems.join("; ")}`, { reason: "INVALID_OPTION" });
  return {
    python: options.python ?? process.env.TRITONJS_PYTHON ?? "python3",
    path,
    env,
    stubTimeoutMs: 1000 * stubTimeoutSeconds,
    loadTimeoutMs: 1000 * loadTimeoutSeconds,
  };
}

/** In the layout of a repository, `<model>/<version>/model.py`, that of the model; otherwise that of the file. */
function modelDirectory(path: string): string {
  const directory = dirname(path);
  return /^[1-9]\d*$/.test(basename(directory)) ? dirname(directory) : directory;
}
