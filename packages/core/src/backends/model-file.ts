import { stat } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { assertInside, isInside } from "../files/path-containment.js";
import type { ModelSource } from "../instance/backend.js";

/** The fields of a model that locate its file. */
export type ModelLocation = Pick<ModelSource, "name" | "directory" | "versionDirectory" | "config">;

/** A file or a directory of a model. */
export interface ModelFile {
  readonly path: string;
  readonly isDirectory: boolean;
}

/**
 * Finds the file, or directory, that a version of a model is in: `default_model_filename`, or the first of the usual
 * names that exists.
 *
 * @param missing makes the error for a file that does not exist
 * @throws TritonError INVALID_ARG for a file outside the model's directory, and `missing` when there is none.
 */
export async function findModelFile(
  { name, directory, versionDirectory, config }: ModelLocation,
  usual: readonly [string, ...string[]],
  missing: (path: string, name: string) => TritonError = notFound,
): Promise<ModelFile> {
  const { defaultModelFilename } = config;
  const names = defaultModelFilename === "" ? usual : [defaultModelFilename];
  for (const one of names) {
    const path = join(versionDirectory, one);
    if (!isInside(directory, path)) {
      throw new TritonError(
        "INVALID_ARG",
        `default_model_filename of model '${name}': expected a path inside the model's directory, got '${one}'`,
        { reason: "PATH_NOT_ALLOWED" },
      );
    }
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) continue;
    await assertInside(directory, path);
    const isDirectory = found.isDirectory();
    if (isDirectory || found.isFile()) return { path, isDirectory };
    throw new TritonError("INVALID_ARG", `cannot read ${path}: it is not a regular file`, {
      reason: "INVALID_MODEL",
    });
  }
  throw missing(join(versionDirectory, names[0]!), name);
}

/** The error for a missing model file, with the text of most of Triton's backends. */
export function notFound(path: string, name: string): TritonError {
  return new TritonError("UNAVAILABLE", `unable to find '${path}' for model instance '${name}'`, {
    reason: "MODEL_FILE_MISSING",
  });
}
