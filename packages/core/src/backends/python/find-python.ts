import { stat } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "../../errors/triton-error.js";
import { isInside } from "../../files/stays-inside.js";
import type { ModelSource } from "../../instance/backend.js";

const MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY";

/**
 * The Python that runs a model: of the directory that its parameter EXECUTION_ENV_PATH names, of the setting
 * `executable` of the backend, of the environment variable TRITONJS_PYTHON, or `python3`.
 *
 * @throws TritonError INVALID_ARG for parameters that cannot be, UNSUPPORTED for an environment that is packed
 */
export async function findPython({
  name,
  directory,
  config,
  settings,
}: Pick<ModelSource, "name" | "directory" | "config" | "settings">): Promise<string> {
  const { parameters } = config;
  const forced = parameters.FORCE_CPU_ONLY_INPUT_TENSORS?.stringValue;
  if (forced !== undefined && forced !== "yes" && forced !== "no") {
    throw new TritonError("INTERNAL", `Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: ${forced}'`);
  }
  const environment = parameters.EXECUTION_ENV_PATH?.stringValue;
  if (environment !== undefined) return pythonOf(name, directory, environment);
  return settings.executable ?? process.env.TRITONJS_PYTHON ?? "python3";
}

async function pythonOf(name: string, directory: string, given: string): Promise<string> {
  const path = given.replace(MODEL_DIRECTORY, directory);
  const what = `model '${name}' has EXECUTION_ENV_PATH '${given}'`;
  if (given.includes(MODEL_DIRECTORY) && !isInside(directory, path)) {
    throw new TritonError("INVALID_ARG", `${what}, which is outside of the model's directory`);
  }
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() || /\.(tar|tgz|zip|tar\.\w+)$/.test(path)) {
    throw new TritonError(
      "UNSUPPORTED",
      `${what}, a packed environment: unpack it (tar -xf, then its bin/conda-unpack) and name its directory instead`,
    );
  }
  for (const program of ["python3", "python"]) {
    const python = join(path, "bin", program);
    if (await stat(python).catch(() => undefined)) return python;
  }
  throw new TritonError("INVALID_ARG", `${what}, but there is no '${join(path, "bin", "python3")}'`);
}
