import { realpathSync } from "node:fs";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { isInside } from "./path-containment.js";
import { readFileNow } from "./read-small-file.js";

/** Reads a data file of a model, by the name in its configuration. */
export type ReadDataFile = (file: string) => Uint8Array;

/**
 * Reads data files of a model, only from one folder of the model's directory.
 *
 * @param folder `warmup` or `initial_state`
 * @returns a function that throws TritonError INVALID_ARG for a file outside the folder, INTERNAL for a file that
 * cannot be read.
 */
export function dataFilesOf(directory: string, folder: string): ReadDataFile {
  return (file) => readFileNow(dataFilePath(directory, folder, file));
}

/**
 * Path of a data file of a model. The file need not exist.
 *
 * @throws TritonError INVALID_ARG for a file outside the folder
 */
export function dataFilePath(directory: string, folder: string, file: string): string {
  const path = join(directory, folder, file);
  if (!isInside(join(directory, folder), path) || !isInside(realPath(directory), realPath(path, directory))) {
    throw new TritonError(
      "INVALID_ARG",
      `data file: expected a path inside the model's directory ${directory}, got '${file}'`,
      { reason: "PATH_NOT_ALLOWED" },
    );
  }
  return path;
}

/** Resolves symbolic links. For a missing path it resolves `instead`. */
function realPath(path: string, instead = path): string {
  try {
    return realpathSync(path);
  } catch {
    return instead === path ? path : realPath(instead);
  }
}
