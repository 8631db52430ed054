import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { errorFor } from "@tritonjs/protocol";

/** @throws TritonError NOT_FOUND for a file that cannot be read */
export function readModelFile(model: string | URL): Uint8Array {
  const path = model instanceof URL ? fileURLToPath(model) : model;
  try {
    return readFileSync(path);
  } catch (error) {
    const text = `cannot read the tree model '${path}': ${(error as Error).message}`;
    throw errorFor("MODEL_FILES_NOT_FOUND", text, { cause: error });
  }
}
