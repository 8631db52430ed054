import { readFile } from "node:fs/promises";
import type { io } from "@tensorflow/tfjs";
import { TritonError } from "@tritonjs/protocol";
import { assertInside, isInside } from "../../files/path-containment.js";
import { type ModelJson, weightBytes, weightFiles } from "./model-json.js";

/**
 * Loads a model for TensorFlow.js from files. TensorFlow.js has a handler of `file://` only with tfjs-node.
 *
 * @param directory the directory that must contain all files of weights
 */
export function fileHandler(model: ModelJson, directory: string): io.IOHandler {
  return {
    load: async () => ({
      ...(model.content as io.ModelArtifacts),
      weightSpecs: model.weightsManifest.flatMap(({ weights }) => weights) as io.WeightsManifestEntry[],
      weightData: await readWeights(model, directory),
    }),
  };
}

/** @throws TritonError INVALID_ARG that names the missing file, or gives the number of missing bytes */
async function readWeights(model: ModelJson, directory: string): Promise<ArrayBuffer> {
  const parts: Buffer[] = [];
  for (const file of weightFiles(model)) {
    if (!isInside(directory, file)) {
      throw new TritonError(
        "INVALID_ARG",
        `weights of the TensorFlow.js model '${model.path}': expected a path inside the model's directory, got '${file}'`,
        { reason: "PATH_NOT_ALLOWED" },
      );
    }
    await assertInside(directory, file);
    try {
      parts.push(await readFile(file));
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      const why = code === "ENOENT" ? "is missing" : `cannot be read: ${TritonError.from(cause).message}`;
      throw new TritonError(
        "INVALID_ARG",
        `the weights '${file}' of the TensorFlow.js model '${model.path}' ${why}`,
        { reason: "INVALID_MODEL", cause },
      );
    }
  }
  const total = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const expected = weightBytes(model);
  if (expected !== undefined && expected !== total) {
    throw new TritonError(
      "INVALID_ARG",
      `weights of the TensorFlow.js model '${model.path}': expected ${expected} bytes, got ${total}`,
      { reason: "INVALID_MODEL" },
    );
  }
  const joined = new Uint8Array(total);
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.byteLength;
  }
  return joined.buffer;
}
