import { readFile } from "node:fs/promises";
import { TritonError } from "@tritonjs/protocol";
import type { Forest } from "./forest.js";
import type { TreeFileOptions } from "./forest-builder.js";
import { type ModelType, readForest } from "./read-forest.js";

/** A model file of a repository. */
export interface ForestFile {
  readonly path: string;
  readonly type: ModelType;
  readonly options: TreeFileOptions;
}

/** Entry of a thread that reads a file. The memory of the forest is shared, so it is not copied. */
export async function read(file: unknown): Promise<Forest> {
  const { path, type, options } = file as ForestFile;
  const bytes = await readFile(path);
  try {
    return readForest(bytes, type, options);
  } catch (error) {
    const { code, message, reason } = TritonError.from(error);
    throw new TritonError(code, `cannot load ${path}: ${message}`, { reason, cause: error });
  }
}
