import { join } from "node:path";
import type { ModelConfig } from "@tritonjs/protocol";
import { exists } from "../files/read-small-file.js";
import type { BackendFactory } from "../instance/backend.js";
import type { BackendProgram } from "./backend-directory.js";
import { moduleBackend } from "./javascript/index.js";
import { pythonModel } from "./python/repository-model.js";

/**
 * The backend whose program all its models share. The directory of a model holds only data: `pb_utils.get_model_dir()`
 * in Python and `modelDirectory` in JavaScript are the directory of its version.
 */
export function sharedProgram(backendName: string, { language, path }: BackendProgram): BackendFactory {
  return (source) =>
    language === "python"
      ? pythonModel(source, { path, backendName, isShared: true })
      : moduleBackend(source, { path, directory: source.versionDirectory, backendName });
}

/**
 * The configuration of a model with such a backend. As in Triton, `runtime` names the program, and an archive
 * `pb_exec_env_model.py.tar.gz` beside a `model.py` is its environment.
 */
export async function configWithProgram(
  config: ModelConfig,
  { language, directory, runtime }: BackendProgram,
): Promise<ModelConfig> {
  const environment = join(directory, `pb_exec_env_${runtime}.tar.gz`);
  const isUsed =
    language === "python" &&
    config.parameters.EXECUTION_ENV_PATH === undefined &&
    (await exists(environment));
  const parameters = isUsed
    ? { ...config.parameters, EXECUTION_ENV_PATH: { stringValue: environment } }
    : config.parameters;
  return { ...config, runtime, parameters };
}
