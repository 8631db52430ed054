import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { isInside } from "../../files/path-containment.js";
import type { ModelSource } from "../../instance/backend.js";
import { unpackedEnvironment } from "./unpacked-environments.js";

const MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY";

/** A Python, held by one user of it. */
export interface FoundPython {
  /** The program: a path, or a name to look up in PATH. */
  readonly program: string;
  /** Releases the Python. */
  release(): Promise<void>;
}

/**
 * Finds the Python that runs a model. In order: the environment (a directory or an archive) that the parameter
 * EXECUTION_ENV_PATH names, the setting `executable` of the backend, the environment variable TRITONJS_PYTHON,
 * `python3`.
 *
 * @param unpackWithinMs how long unpacking may take
 * @throws TritonError INVALID_ARG for invalid parameters, INTERNAL for an archive that cannot be unpacked
 */
export async function findPython(
  { name, directory, config, settings }: Pick<ModelSource, "name" | "directory" | "config" | "settings">,
  unpackWithinMs: number,
): Promise<FoundPython> {
  const { parameters } = config;
  const forced = parameters.FORCE_CPU_ONLY_INPUT_TENSORS?.stringValue;
  if (forced !== undefined && forced !== "yes" && forced !== "no") {
    throw new TritonError("INTERNAL", `Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: ${forced}'`);
  }
  const environment = parameters.EXECUTION_ENV_PATH?.stringValue;
  if (environment !== undefined) return pythonOf(name, directory, environment, unpackWithinMs);
  return kept(settings.executable ?? process.env.TRITONJS_PYTHON ?? "python3");
}

async function pythonOf(
  name: string,
  directory: string,
  given: string,
  unpackWithinMs: number,
): Promise<FoundPython> {
  const path = resolve(given.replace(MODEL_DIRECTORY, () => directory));
  const what = `model '${name}' has EXECUTION_ENV_PATH '${given}'`;
  if (given.includes(MODEL_DIRECTORY) && !isInside(directory, path)) {
    throw new TritonError("INVALID_ARG", `${what}: expected a path inside the model's directory`, {
      reason: "PATH_NOT_ALLOWED",
    });
  }
  const found = await stat(path).catch(() => undefined);
  if (found === undefined)
    throw new TritonError("INVALID_ARG", `${what}: '${path}' does not exist`, { reason: "INVALID_CONFIG" });
  if (found.isDirectory()) {
    const program = await programIn(path);
    if (program !== undefined) return kept(program);
    throw new TritonError("INVALID_ARG", `${what}: '${join(path, "bin", "python3")}' does not exist`, {
      reason: "INVALID_CONFIG",
    });
  }
  const environment = await unpackedEnvironment(path, unpackWithinMs).catch((cause) => {
    const why = TritonError.from(cause).message;
    throw new TritonError("INTERNAL", `${what}: cannot unpack it: ${why}`, { cause });
  });
  const program = await programIn(environment.directory);
  if (program !== undefined) return { program, release: environment.release };
  await environment.release();
  throw new TritonError("INVALID_ARG", `${what}: expected 'bin/python3' in the archive`, {
    reason: "INVALID_CONFIG",
  });
}

async function programIn(environment: string): Promise<string | undefined> {
  for (const name of ["python3", "python"]) {
    const program = join(environment, "bin", name);
    if (await stat(program).catch(() => undefined)) return program;
  }
  return undefined;
}

/** A Python that needs no release. */
function kept(program: string): FoundPython {
  return { program, release: async () => {} };
}
