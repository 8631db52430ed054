import { realpathSync } from "node:fs";
import { join } from "node:path";
import { TritonError } from "../errors/triton-error.js";
import { isInside } from "./stays-inside.js";

/**
 * Path of a file with data of a model: in a folder of the model's directory, and nowhere else.
 *
 * @param folder `warmup` or `initial_state`
 * @throws TritonError INVALID_ARG for a file outside of the folder. One that is not there is left to whoever opens it.
 */
export function dataFilePath(directory: string, folder: string, file: string): string {
  const path = join(directory, folder, file);
  if (!isInside(join(directory, folder), path) || !isInside(realPath(directory), realPath(path, directory))) {
    throw new TritonError(
      "INVALID_ARG",
      `data file '${file}' is outside of the model's directory ${directory}`,
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
