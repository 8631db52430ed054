import { open, readdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { type ImportOptions, importModel } from "@tritonjs/backends/optimize";
import { inspectModelFile } from "@tritonjs/repository/config";
import { HuggingFaceDirectory, isFile } from "./hugging-face-directory.js";
import { badSource, cannotServe, type ImportPlan, type PlanOptions } from "./import-plan.js";
import { planImageReader } from "./plan-image-models.js";
import {
  planFrozenGraph,
  planGguf,
  planKeras,
  planOnnx,
  planSavedModel,
  planTensorflowJs,
  planTrees,
} from "./plan-model-files.js";
import { planTextGeneration, planTextReader } from "./plan-text-models.js";

/** Bytes by which the kind of a file is recognised. */
const HEAD = 4096;

/**
 * Plans the models that serve a file or directory.
 *
 * @param folder for files that are converted; they must last until the plan is carried out
 * @throws TritonError NOT_FOUND for a missing path, INVALID_ARG for faulty files, UNSUPPORTED for what is not served, with
 * its name and what to do
 */
export async function planSource(
  source: string,
  folder: string,
  options: PlanOptions & ImportOptions,
): Promise<ImportPlan> {
  const path = resolve(source);
  const found = await stat(path).catch((error: Error) => {
    throw badSource(source, `cannot read it: ${error.message}`, error);
  });
  return found.isDirectory() ? planDirectory(path, folder, options) : planFile(path, folder, options);
}

async function planDirectory(
  path: string,
  folder: string,
  options: PlanOptions & ImportOptions,
): Promise<ImportPlan> {
  const has = (name: string) => isFile(join(path, name));
  if ((await has("config.pbtxt")) || (await has("1/model.onnx"))) {
    throw cannotServe(
      path,
      "it is a model of a repository already: copy the directory into the other repository",
    );
  }
  if (await has("saved_model.pb")) return planSavedModel(path, options);
  const directory = await HuggingFaceDirectory.open(path);
  if (directory !== undefined) return planHuggingFace(directory, options);
  if (await has("model.json")) return planFile(join(path, "model.json"), folder, options);
  // A folder with one model file, as exporters leave it.
  const files = (await readdir(path)).filter((name) => MODEL_FILE.test(name));
  const [only] = files;
  if (only !== undefined && files.length === 1) return planFile(join(path, only), folder, options);
  if (files.length > 1) {
    const first = files.find((name) => /-00001-of-\d{5}\.gguf$/.test(name));
    if (first !== undefined) return planFile(join(path, first), folder, options);
    throw cannotServe(path, `it has several model files (${files.join(", ")}): name one of them`);
  }
  throw cannotServe(
    path,
    "expected a directory of Hugging Face with a config.json, a SavedModel, a model of TensorFlow.js, or one model file, got none of them",
  );
}

/** Files that are models by their name alone. */
const MODEL_FILE = /\.(onnx|gguf|keras|h5|ubj|tl|pt2?|pb)$/i;

async function planHuggingFace(directory: HuggingFaceDirectory, options: PlanOptions): Promise<ImportPlan> {
  const { architecture, label, path } = directory;
  const generates = await directory.graph(["model", "decoder_model_merged"], options);
  const encoder = await directory.graph(["encoder_model"], {});
  if (encoder !== undefined && options.file === undefined) {
    throw cannotServe(
      path,
      `${label} has an encoder beside its decoder (${encoder}); expected a decoder alone, because the backend text_generation ` +
        "does not run models such as Whisper, T5 and BART",
    );
  }
  if (generates === undefined) throw await withoutGraph(directory);
  const inputs = await graphInputs(join(path, generates));
  const has = (pattern: RegExp) => inputs.some((name) => pattern.test(name));
  if ((await directory.has("genai_config.json")) || has(/^past_key_values\.|^past_key_/))
    return planTextGeneration(directory, generates, options);
  if (architecture.endsWith("ForCausalLM")) {
    throw cannotServe(
      path,
      `the graph '${generates}' of ${label} has no past keys and values: export it with optimum-cli export onnx --task text-generation-with-past`,
    );
  }
  if (has(/^pixel_values$/) && has(/^input_ids$/))
    throw cannotServe(path, `${label} reads images and texts at once: add one of its graphs with --file`);
  if (has(/^pixel_values$/)) return planImageReader(directory, generates, options);
  if (has(/^input_ids$/)) return planTextReader(directory, generates, options);
  if (has(/^(input_values|input_features)$/)) {
    throw cannotServe(
      path,
      `${label} reads audio: add its file '${generates}' by itself, and put the backend audio before it in an ensemble`,
    );
  }
  throw cannotServe(
    path,
    `${label} has the inputs ${inputs.join(", ")}: expected input_ids or pixel_values; add its file '${generates}' by itself`,
  );
}

async function graphInputs(path: string): Promise<string[]> {
  const inspection = await inspectModelFile(path);
  if (inspection?.config === undefined)
    throw badSource(path, inspection?.findings[0]?.message ?? "expected an ONNX graph");
  return inspection.config.input.map(({ name }) => name);
}

async function withoutGraph(directory: HuggingFaceDirectory): Promise<Error> {
  const names = await readdir(directory.path);
  const gguf = names.find((name) => name.endsWith(".gguf"));
  if (gguf === undefined) return directory.noGraph();
  return cannotServe(directory.path, `it has no ONNX graph, but '${gguf}': add that file`);
}

async function planFile(
  path: string,
  folder: string,
  options: PlanOptions & ImportOptions,
): Promise<ImportPlan> {
  const head = await headOf(path);
  const start = head.toString("latin1", 0, 256);
  const name = basename(path).toLowerCase();
  if (name === "saved_model.pb") return planSavedModel(dirname(path), options);
  if (start.startsWith("GGUF")) return planGguf(path, head, options);
  if (/\.(ubj|tl|model|xgb|bst)$/.test(name) || start.startsWith("tree\n") || start.startsWith("tree\r\n"))
    return planTrees(path, options);
  if (name.endsWith(".json")) {
    if (/^\s*\{\s*"(learner|version)"/.test(start)) return planTrees(path, options);
    if (/"(modelTopology|weightsManifest|format)"\s*:/.test(head.toString("latin1")))
      return planTensorflowJs(path, options);
  }
  if (/\.(pb|graphdef)$/.test(name)) return planFrozenGraph(path, options);
  if (/\.(keras|h5|hdf5)$/.test(name)) return planKeras(path, options);
  const onnx = await importModel(path, folder, options);
  const plan = await planOnnx(onnx, options);
  return onnx === path ? plan : { ...plan, kind: `${plan.kind}, made of ${basename(path)}` };
}

async function headOf(path: string): Promise<Buffer> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD), 0, HEAD, 0);
  return buffer.subarray(0, bytesRead);
}

/** Names of files and folders that say nothing about the model. */
const ANY_MODEL = /^(model(_\w+)?|saved_model|model\.savedmodel|index|xgboost|checkpoint|onnx|1)$/i;

/** The name of a model: that of its file or directory, with the characters that repositories allow. */
export function nameOfSource(source: string): string {
  const path = resolve(source);
  const [, cached] = /models--(?:[^/]+--)?([^/]+?)\/snapshots\/[^/]+$/.exec(path.replaceAll("\\", "/")) ?? [];
  let name =
    cached ??
    basename(path).replace(
      /\.(onnx|json|savedmodel|ubj|tl|model|txt|gguf|keras|h5|hdf5|pb|graphdef|pt2?|pth|xgb|bst)$/i,
      "",
    );
  let folder = dirname(path);
  while (ANY_MODEL.test(name) && folder !== dirname(folder)) {
    name = basename(folder);
    folder = dirname(folder);
  }
  return name.replaceAll(/[^\w.-]+/g, "_").replace(/^[.-]+/, "") || "model";
}
