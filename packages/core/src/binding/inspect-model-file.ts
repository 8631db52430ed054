import { open, stat } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { TritonError } from "@tritonjs/protocol";
import { onnxruntime } from "../backends/onnxruntime/index.js";
import { quickDescription } from "../backends/tensorflow/describe-model.js";
import { tensorflow } from "../backends/tensorflow/index.js";
import { listedGpus } from "../config/placement/gpus.js";
import type { Backend } from "../instance/backend.js";
import { Findings } from "../repository/inspect/finding.js";
import type { ModelInspection } from "../repository/inspect/inspect-repository.js";
import { importInstalled } from "../unbundled.js";
import { planBinding } from "./plan-binding.js";

/**
 * Inspects a model file outside of a repository: an `.onnx` file, a `model.json` of TensorFlow.js, the directory of a
 * TensorFlow SavedModel, or a file that `@tritonjs/trees` reads. The configuration is the one that `bind` makes for the file alone. Nothing runs, except a
 * worker for a file that does not describe all of its tensors.
 *
 * @param name name of the model. @default that of the file or, if all files of the kind have the same, of its directory
 * @returns the inspection, or undefined for a path that is not a model file
 */
export async function inspectModelFile(path: string, name?: string): Promise<ModelInspection | undefined> {
  const file = resolve(path);
  const modelName = name ?? nameOf(file);
  const findings = new Findings();
  const inspection = { name: modelName, directory: file, findings: findings.all };
  try {
    const backend = await backendOf(file);
    if (backend === undefined) return undefined;
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
    case ".ubj":
    case ".tl":
    case ".model":
      return treesOf(file);
    case ".txt":
      return /^tree\r?\n/.test(await startOf(file)) ? treesOf(file) : undefined;
    case ".json": {
      if (/^\s*\{\s*"(learner|version)"/.test(await startOf(file))) return treesOf(file);
      const backend = tensorflow({ model: file });
      const json = { path: file, savedModel: false };
      return { ...backend, describe: () => quickDescription(json) ?? backend.describe() };
    }
    default:
      return undefined;
  }
}

async function startOf(file: string): Promise<string> {
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0);
  return buffer.toString("latin1", 0, bytesRead);
}

/** The package of tree models. */
interface TreesPackage {
  trees(options: { readonly model: string }): Backend;
}

async function treesOf(file: string): Promise<Backend> {
  const found = await importInstalled<TreesPackage>("@tritonjs/trees");
  if (found !== undefined) return found.trees({ model: file });
  throw new TritonError("UNAVAILABLE", `the tree model '${file}' needs a package: install @tritonjs/trees`, {
    reason: "PACKAGE_NOT_INSTALLED",
  });
}

/** File names that say nothing about the model. */
const ANY_MODEL = new Set(["model", "saved_model", "index", "xgboost", "checkpoint"]);

/** The name of the file, or of the nearest directory that is not a version. */
function nameOf(file: string): string {
  const own = basename(file).replace(/\.(onnx|json|savedmodel|ubj|tl|model|txt)$/, "");
  if (!ANY_MODEL.has(own)) return own;
  let directory = dirname(file);
  while (/^\d+$/.test(basename(directory))) directory = dirname(directory);
  return basename(directory) || own;
}
