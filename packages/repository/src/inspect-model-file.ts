import { open, stat } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import type { Backend } from "@tritonjs/core/backend";
import { bindingOf } from "@tritonjs/core/internal";
import { TritonError } from "@tritonjs/protocol";
import { loadBackend } from "./backends/find-backend.js";
import { Findings, type ModelInspection } from "./inspect-repository.js";

/**
 * Inspects a model file outside of a repository: an `.onnx` file, a `model.json` of TensorFlow.js, the directory of a
 * TensorFlow SavedModel, or a file that `@tritonjs/backends/trees` reads. The configuration is the one that `bind` makes
 * for the file alone. Nothing runs, except a worker for a file that does not describe all of its tensors.
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
    const { backend } = (await modelFileBackend(file)) ?? {};
    if (backend === undefined) return undefined;
    const { config, labels } = bindingOf(modelName, backend);
    return { ...inspection, config, labels };
  } catch (error) {
    findings.addLines("error", file, TritonError.from(error).message);
    return { ...inspection, config: undefined };
  }
}

/**
 * Makes the backend of a model file outside of a repository, of the kinds that `inspectModelFile` knows, for `bind`.
 *
 * @returns the backend and the name of the model: that of the file, or undefined for a path that is not a model file
 * @throws TritonError for a model file that cannot be read
 */
export async function modelFileBackend(
  path: string,
): Promise<{ readonly name: string; readonly backend: Backend } | undefined> {
  const file = resolve(path);
  const backend = await backendOf(file);
  return backend && { name: nameOf(file), backend };
}

async function backendOf(file: string): Promise<Backend | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return undefined;
  if (found.isDirectory()) {
    const graph = await stat(join(file, "saved_model.pb")).catch(() => undefined);
    return graph === undefined ? undefined : tensorflowOf(file);
  }
  switch (extname(file)) {
    case ".onnx":
      return onnxOf(file);
    case ".ubj":
    case ".tl":
    case ".model":
      return treesOf(file);
    case ".txt":
      return /^tree\r?\n/.test(await startOf(file)) ? treesOf(file) : undefined;
    case ".json":
      return /^\s*\{\s*"(learner|version)"/.test(await startOf(file)) ? treesOf(file) : tensorflowOf(file);
    default:
      return undefined;
  }
}

async function startOf(file: string): Promise<string> {
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(64), 0, 64, 0);
  return buffer.toString("latin1", 0, bytesRead);
}

/** Makes the backend of a model file. */
type BackendOfFile = (options: { readonly model: string }) => Backend;

async function onnxOf(file: string): Promise<Backend> {
  const { onnxruntime } = await loadBackend<{ onnxruntime: BackendOfFile }>(
    "onnxruntime",
    `the ONNX model '${file}'`,
  );
  return onnxruntime({ model: file });
}

async function treesOf(file: string): Promise<Backend> {
  const { trees } = await loadBackend<{ trees: BackendOfFile }>("fil", `the tree model '${file}'`);
  return trees({ model: file });
}

async function tensorflowOf(file: string): Promise<Backend> {
  const { tensorflowFile } = await loadBackend<{ tensorflowFile(path: string): Backend }>(
    "tensorflow",
    `the TensorFlow model '${file}'`,
  );
  return tensorflowFile(file);
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
