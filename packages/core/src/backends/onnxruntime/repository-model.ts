import { stat } from "node:fs/promises";
import { join } from "node:path";
import { assertStaysInside } from "../../files/stays-inside.js";
import type { BackendFactory } from "../../instance/backend.js";
import { findModelFile, type ModelLocation, notFound } from "../model-file.js";
import { checkExternalData } from "./external-data.js";
import { onnxruntime } from "./index.js";
import { optionsOf } from "./model-parameters.js";

/** The backend `onnxruntime` for models of a repository: `<version>/model.onnx`, or a directory with such a file. */
export const onnxRuntimeBackend: BackendFactory = async (source) => {
  const model = await modelFile(source);
  await checkExternalData(source.directory, model);
  return onnxruntime({ model, onWarning: source.warn, ...optionsOf(source.config) });
};

async function modelFile(source: ModelLocation): Promise<string> {
  const { path, isDirectory } = await findModelFile(source, ["model.onnx"]);
  if (!isDirectory) return path;
  const inside = join(path, "model.onnx");
  const found = await stat(inside).catch(() => undefined);
  if (!found?.isFile()) throw notFound(inside, source.name);
  await assertStaysInside(source.directory, inside);
  return inside;
}
