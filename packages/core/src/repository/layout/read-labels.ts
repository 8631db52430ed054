import { join } from "node:path";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";

import { assertInside, isInside } from "../../files/path-containment.js";
import { readSmallFile } from "../../files/read-small-file.js";

/**
 * Reads the class names of each output that has a label file, one name on each line.
 *
 * @throws TritonError INVALID_ARG for a file outside the model's directory, INTERNAL for a file that cannot be read.
 */
export async function readLabels(
  directory: string,
  config: ModelConfig,
): Promise<Map<string, readonly string[]>> {
  const labels = new Map<string, readonly string[]>();
  for (const { name, labelFilename } of config.output) {
    if (labelFilename === "") continue;
    const path = join(directory, labelFilename);
    if (!isInside(directory, path)) {
      throw new TritonError(
        "INVALID_ARG",
        `label_filename of output '${name}' of model '${config.name}': expected a path inside the model's directory, ` +
          `got '${labelFilename}'`,
        { reason: "PATH_NOT_ALLOWED" },
      );
    }
    await assertInside(directory, path);
    const text = new TextDecoder().decode(await readSmallFile(path));
    labels.set(name, text.replace(/\r?\n$/, "").split(/\r?\n/));
  }
  return labels;
}
