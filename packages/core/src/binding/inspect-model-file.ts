import { stat } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { onnxruntime } from "../backends/onnxruntime/index.js";
import { quickDescription } from "../backends/tensorflow/describe-model.js";
import { tensorflow } from "../backends/tensorflow/index.js";
import { listedGpus } from "../config/placement/gpus.js";
import type { Backend } from "../instance/backend.js";
import { Findings } from "../repository/inspect/finding.js";
import type { ModelInspection } from "../repository/inspect/inspect-repository.js";
import { planBinding } from "./plan-binding.js";

/**
 * Inspects a model file outside of a repository: an `.onnx` file, a `model.json` of TensorFlow.js, or the directory of
 * a TensorFlow SavedModel. The configuration is the one that `bind` makes for the file alone. Nothing runs, except a
 * worker for a file that does not describe all of its tensors.
 *
 * @param name name of the model. @default that of the file or, if all files of the kind have the same, of its directory
 * @returns the inspection, or undefined for a path that is not a model file
 */
export async function inspectModelFile(path: string, name?: string): Promise<ModelInspection | undefined> {
  const file = resolve(path);
  const backend = await backendOf(file);
  if (backend === undefined) return undefined;
  const modelName = name ?? nameOf(file);
  const findings = new Findings();
  const inspection = { name: modelName, directory: file, findings: findings.all };
  try {
    const options = { modelName, inferFunc: backend };
    return { ...inspection, config: planBinding(options, () => false, listedGpus([])).config };
  } catch (error) {
    findings.addLines("error", file, TritonError.from(error).message);
    return { ...inspection, config: undefined };
  }
}

async function backendOf(file: string): Promise<Backend | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return undefined;
  if (found.isDirectory()) {
    const graph = await stat(join(file, "saved_model.pb")).catch(() => undefined);
    return graph === undefined ? undefined : tensorflow({ model: file });
  }
  switch (extname(file)) {
    case ".onnx":
      return onnxruntime({ model: file });
    case ".json": {
      const backend = tensorflow({ model: file });
      const json = { path: file, savedModel: false };
      return { ...backend, describe: () => quickDescription(json) ?? backend.describe() };
    }
    default:
      return undefined;
  }
}

/** File names that say nothing about the model. */
const ANY_MODEL = new Set(["model", "saved_model", "index"]);

/** The name of the file, or of the nearest directory that is not a version. */
function nameOf(file: string): string {
  const own = basename(file).replace(/\.(onnx|json|savedmodel)$/, "");
  if (!ANY_MODEL.has(own)) return own;
  let directory = dirname(file);
  while (/^\d+$/.test(basename(directory))) directory = dirname(directory);
  return basename(directory) || own;
}
