import { stat } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "../errors/triton-error.js";
import { assertStaysInside, isInside } from "../files/stays-inside.js";
import type { ModelSource } from "../instance/backend.js";

/** What of a model tells where its file is. */
export type ModelLocation = Pick<ModelSource, "name" | "directory" | "versionDirectory" | "config">;

/** A file or a directory of a model. */
export interface ModelFile {
  readonly path: string;
  readonly isDirectory: boolean;
}

/**
 * Finds the file, or directory, that a version of a model is in: `default_model_filename`, or the first of the usual
 * names that is there.
 *
 * @throws TritonError INVALID_ARG for one outside of the model's directory, UNAVAILABLE when there is none, with
 * Triton's text.
 */
export async function findModelFile(
  { name, directory, versionDirectory, config }: ModelLocation,
  usual: readonly [string, ...string[]],
): Promise<ModelFile> {
  const { defaultModelFilename } = config;
  const names = defaultModelFilename === "" ? usual : [defaultModelFilename];
  for (const one of names) {
    const path = join(versionDirectory, one);
    if (!isInside(directory, path)) {
      throw new TritonError(
        "INVALID_ARG",
        `model '${name}' has default_model_filename '${one}', which is outside of the model's directory`,
      );
    }
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    await assertStaysInside(directory, path);
    return { path, isDirectory: found.isDirectory() };
  }
  throw notFound(join(versionDirectory, names[0]!), name);
}

/** The error for a model whose file is not there. */
export function notFound(path: string, name: string): TritonError {
  return new TritonError("UNAVAILABLE", `unable to find '${path}' for model instance '${name}'`);
}
