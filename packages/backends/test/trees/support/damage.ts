import { TritonError } from "@tritonjs/protocol";
import { TreeModel } from "../../../src/trees/index.js";
import type { ModelType } from "../../../src/trees/read-forest.js";

/**
 * Reads and runs a file that may be damaged. Damage that leaves a valid model is not a fault: the answer is then finite work
 * on its trees. Throws for anything but an error that names the reason.
 *
 * @returns the error's code, or "read"
 */
export function outcomeOfDamage(model: Uint8Array, modelType: ModelType): string {
  let read: TreeModel;
  try {
    read = new TreeModel({ model, modelType });
  } catch (error) {
    if (TritonError.is(error) && (error.code === "INVALID_ARG" || error.code === "UNSUPPORTED"))
      return error.code;
    throw error;
  }
  // A file may claim any number of columns; a request would have to send them.
  if (read.features > 100_000) return "read";
  const answers = read.predict(new Float32Array(3 * read.features).fill(Number.NaN, 0, read.features));
  if (answers.length !== 3 * read.columns)
    throw new Error(`expected ${3 * read.columns} answers, got ${answers.length}`);
  return "read";
}
