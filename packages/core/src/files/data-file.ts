import { realpathSync } from "node:fs";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { isInside } from "./path-containment.js";
import { readFileNow } from "./read-small-file.js";

/** Reads a file with data of a model, by the name that its configuration has. */
export type ReadDataFile = (file: string) => Uint8Array;

/**
 * Reads files with data of a model: from a folder of the model's directory, and from nowhere else.
 *
 * @param folder `warmup` or `initial_state`
 * @returns a function that throws TritonError INVALID_ARG for a file outside of the folder, INTERNAL for one that
 * cannot be read.
 */
export function dataFilesOf(directory: string, folder: string): ReadDataFile {
  return (file) => readFileNow(dataFilePath(directory, folder, file));
}

/**
 * Path of a file with data of a model, which need not be there.
 *
 * @throws TritonError INVALID_ARG for one outside of the folder
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

/** Where links lead; for what is not there, whatever is given instead. */
function realPath(path: string, instead = path): string {
  try {
    return realpathSync(path);
  } catch {
    return instead === path ? path : realPath(instead);
  }
}
