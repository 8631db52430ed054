import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { OnnxModel } from "@tritonjs/backends/optimize";
import { detectModelType, TREE_FILE_NAMES } from "@tritonjs/backends/trees";
import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { inspectModelFile } from "@tritonjs/repository/config";
import { objectOf } from "./hugging-face-directory.js";
import {
  badSource,
  type ConfigText,
  cannotServe,
  type ImportPlan,
  type PlannedFile,
  type PlanOptions,
  tensorTexts,
} from "./import-plan.js";

/** An ONNX file with its external data. */
export async function planOnnx(file: string, { name, maxBatchSize }: PlanOptions): Promise<ImportPlan> {
  const model = await OnnxModel.read(file);
  const folder = dirname(file);
  const data = [...model.externalFiles()].map((path) => ({ path, from: join(folder, path) }));
  const described = await describedConfig(file, maxBatchSize);
  const config: ConfigText = { backend: "onnxruntime", ...described };
  return {
    kind: "an ONNX model",
    models: [{ name, config, versionFiles: [{ path: "model.onnx", from: file }, ...data] }],
    notes: [],
  };
}

async function describedConfig(
  path: string,
  largest: number,
): Promise<Pick<ConfigText, "maxBatchSize" | "input" | "output">> {
  const inspection = await inspectModelFile(path);
  if (inspection === undefined) throw badSource(path, "expected a model file");
  if (inspection.config === undefined)
    throw badSource(path, inspection.findings[0]?.message ?? "it cannot be read");
  return tensorsOfConfig(inspection.config, largest);
}

function tensorsOfConfig(
  { maxBatchSize, input, output }: ModelConfig,
  largest: number,
): Pick<ConfigText, "maxBatchSize" | "input" | "output"> {
  return {
    maxBatchSize: maxBatchSize > 0 ? largest : 0,
    input: tensorTexts(input),
    output: tensorTexts(output),
  };
}

/** Trees of XGBoost, LightGBM or Treelite. Answers are those of `predict` of the library. */
export async function planTrees(file: string, { name }: PlanOptions): Promise<ImportPlan> {
  const type = detectTreeType(file, await readFile(file));
  const described = await describedConfig(file, TREES_BATCH);
  const config: ConfigText = {
    backend: "fil",
    ...described,
    parameters: { model_type: type, is_classifier: "false" },
  };
  return {
    kind: `trees, ${type}`,
    models: [{ name, config, versionFiles: [{ path: TREE_FILE_NAMES[type], from: file }] }],
    notes: [],
  };
}

/** Largest batch of trees, as in the examples of Triton's backend. */
const TREES_BATCH = 32_768;

function detectTreeType(file: string, bytes: Buffer) {
  try {
    return detectModelType(bytes);
  } catch (error) {
    throw badSource(file, TritonError.from(error).message, error);
  }
}

/** A SavedModel, as TensorFlow and Keras write it. */
export async function planSavedModel(directory: string, options: PlanOptions): Promise<ImportPlan> {
  const files: PlannedFile[] = [];
  for (const part of ["saved_model.pb", "fingerprint.pb", "keras_metadata.pb", "variables", "assets"]) {
    for (const path of await filesUnder(join(directory, part)))
      files.push({ path: join("model.savedmodel", relative(directory, path)), from: path });
  }
  const described = await describedConfig(directory, options.maxBatchSize);
  const config: ConfigText = { platform: "tensorflow_savedmodel", ...described };
  return {
    kind: "a SavedModel of TensorFlow",
    models: [{ name: options.name, config, versionFiles: files }],
    notes: [],
  };
}

/** Files of a path: itself, or those of the directory. A missing path has none. */
async function filesUnder(path: string): Promise<string[]> {
  let entries: Awaited<ReturnType<typeof readEntries>>;
  try {
    entries = await readEntries(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOTDIR") return [path];
    if (code === "ENOENT") return [];
    throw badSource(path, `cannot read it: ${message}`, error);
  }
  const found: string[] = [];
  for (const entry of entries) {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) found.push(...(await filesUnder(inside)));
    else found.push(inside);
  }
  return found;
}

const readEntries = (path: string) => readdir(path, { withFileTypes: true });

/** A frozen graph of TensorFlow. Loading completes its tensors. */
export function planFrozenGraph(file: string, { name, maxBatchSize }: PlanOptions): ImportPlan {
  const config: ConfigText = { platform: "tensorflow_graphdef", maxBatchSize };
  return {
    kind: "a frozen graph of TensorFlow",
    models: [{ name, config, versionFiles: [{ path: "model.graphdef", from: file }] }],
    notes: [],
  };
}

/** A file of Keras, by its name `.keras`, `.h5` or `.hdf5`. Loading completes its tensors. */
export function planKeras(file: string, { name, maxBatchSize }: PlanOptions): ImportPlan {
  const config: ConfigText = { backend: "tensorflow", maxBatchSize };
  const path = file.toLowerCase().endsWith(".keras") ? "model.keras" : "model.h5";
  const packages = path === "model.keras" ? "the packages h5wasm and fflate" : "the package h5wasm";
  return {
    kind: "a file of Keras",
    models: [{ name, config, versionFiles: [{ path, from: file }] }],
    notes: [`it runs on TensorFlow.js, and needs ${packages}`],
  };
}

/** A model of TensorFlow.js with its files of weights. */
export async function planTensorflowJs(
  file: string,
  { name, maxBatchSize }: PlanOptions,
): Promise<ImportPlan> {
  const content = JSON.parse(await readFile(file, "utf8")) as { readonly weightsManifest?: unknown };
  const groups = Array.isArray(content.weightsManifest) ? (content.weightsManifest as unknown[]) : [];
  const paths = groups.flatMap((group) => {
    const { paths: own } = objectOf(group);
    return Array.isArray(own) ? own.map(String) : [];
  });
  const folder = dirname(file);
  const outside = paths.find((path) => relative(folder, join(folder, path)).startsWith(".."));
  if (outside !== undefined)
    throw badSource(file, `weights: expected paths in the directory of the model, got '${outside}'`);
  const described = await describedConfig(file, maxBatchSize);
  const config: ConfigText = { backend: "tensorflow", ...described };
  const weights = paths.map((path) => ({ path, from: join(folder, path) }));
  return {
    kind: "a model of TensorFlow.js",
    models: [{ name, config, versionFiles: [{ path: "model.json", from: file }, ...weights] }],
    notes: [],
  };
}

/** Architectures of GGUF files whose models turn a text into a vector. */
const GGUF_ENCODERS = /^(bert|nomic-bert|nomic-bert-moe|jina-bert-v2|jina-bert-v3|modern-bert|gte|neo-bert)$/;

/** A GGUF file of llama.cpp, whole or in parts. */
export async function planGguf(file: string, head: Buffer, { name }: PlanOptions): Promise<ImportPlan> {
  const architecture = ggufArchitecture(head);
  if (architecture === undefined)
    throw badSource(file, "expected a GGUF file with general.architecture at its start, got none");
  if (architecture === "clip")
    throw cannotServe(
      file,
      "it has the architecture 'clip', a projector of images: expected a model of texts",
    );
  const isEncoder = GGUF_ENCODERS.test(architecture);
  const parts = await ggufParts(file);
  const config: ConfigText = {
    backend: "llamacpp",
    ...(parts.length > 1 && { defaultModelFilename: basename(parts[0]!) }),
    ...(isEncoder && { parameters: { task: "embedding" } }),
  };
  const versionFiles = parts.map((from) => ({
    path: parts.length > 1 ? basename(from) : "model.gguf",
    from,
  }));
  const kind = `${isEncoder ? "embeddings" : "text generation"} by llama.cpp, ${architecture}`;
  return { kind, models: [{ name, config, versionFiles }], notes: [] };
}

/** The files of a model in parts, in their order; else the file alone. */
async function ggufParts(file: string): Promise<string[]> {
  const [, stem = "", count = ""] = /^(.*)-\d{5}-of-(\d{5})\.gguf$/.exec(basename(file)) ?? [];
  if (count === "") return [file];
  const parts = Array.from(
    { length: Number(count) },
    (_, i) => `${stem}-${String(i + 1).padStart(5, "0")}-of-${count}.gguf`,
  );
  const folder = dirname(file);
  const present = new Set(await readdir(folder));
  const missing = parts.find((part) => !present.has(part));
  if (missing === undefined) return parts.map((part) => join(folder, part));
  throw badSource(file, `it is one of ${Number(count)} parts: expected '${missing}' beside it, got none`);
}

/** The value of the first key of a GGUF file, which is its architecture. */
function ggufArchitecture(head: Buffer): string | undefined {
  const key = "general.architecture";
  const at = head.indexOf(key);
  if (at < 0) return undefined;
  // The type 8 is a text: its length in 8 bytes, then its bytes.
  const type = at + key.length;
  if (head.length < type + 12 || head.readUInt32LE(type) !== 8) return undefined;
  const length = Number(head.readBigUInt64LE(type + 4));
  const start = type + 12;
  return length <= 64 && start + length <= head.length
    ? head.toString("utf8", start, start + length)
    : undefined;
}
