import { stat } from "node:fs/promises";
import { join } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { assertInside } from "../../files/path-containment.js";
import type { BackendFactory } from "../../instance/backend.js";
import { hostingOf } from "../hosting-parameters.js";
import { findModelFile, type ModelLocation, notFound } from "../model-file.js";
import { checkExternalData } from "./external-data.js";
import { optionsOf } from "./model-parameters.js";
import { onnxBackend } from "./onnx-backend.js";

/** The backend `onnxruntime` for models of a repository: `<version>/model.onnx`, or a directory with such a file. */
export const onnxRuntimeBackend: BackendFactory = async (source) => {
  const model = await modelFile(source);
  await checkExternalData(source.directory, model);
  const { config, settings, warn } = source;
  const options = { model, onWarning: warn, ...optionsOf(config, settings, warn) };
  const endsBatches = (options.engine ?? "worker") !== "worker";
  return onnxBackend(options, hostingOf(source, ["worker", "process"], !endsBatches));
};

async function modelFile(source: ModelLocation): Promise<string> {
  const { path, isDirectory } = await findModelFile(source, ["model.onnx"], notStatted);
  if (!isDirectory) return path;
  const inside = join(path, "model.onnx");
  const found = await stat(inside).catch(() => undefined);
  if (!found?.isFile()) throw notFound(inside, source.name);
  await assertInside(source.directory, inside);
  return inside;
}

/** Triton's onnxruntime backend first checks whether the file is a directory. */
function notStatted(path: string): TritonError {
  return new TritonError("INTERNAL", `failed to stat file ${path}`, { reason: "FILE_NOT_READABLE" });
}
