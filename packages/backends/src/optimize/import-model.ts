import { open, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorFor } from "@tritonjs/protocol";
import { sklearnImporter } from "./import-sklearn.js";
import { torchImporter } from "./import-torch.js";
import type { ImportOptions, ImportPlace, ModelImporter } from "./model-importer.js";

/** All importers. The first that recognises a model reads it. */
const IMPORTERS: readonly ModelImporter[] = [sklearnImporter, torchImporter];

const startsWith =
  (text: string, at = 0) =>
  ({ head }: ImportPlace) =>
    head.subarray(at, at + text.length).toString("latin1") === text;

const endsWith =
  (pattern: RegExp) =>
  ({ path }: ImportPlace) =>
    pattern.test(path);

/** Formats that are known, but not read, with what to do. */
const FOREIGN: readonly (readonly [name: string, is: (place: ImportPlace) => boolean, advice: string])[] = [
  [
    "a directory of TensorFlow",
    ({ isDirectory }) => isDirectory,
    "python -m tf2onnx.convert --saved-model <directory> --output model.onnx",
  ],
  ["Keras (HDF5)", startsWith("\x89HDF"), "python -m tf2onnx.convert --keras model.h5 --output model.onnx"],
  ["Keras (a ZIP archive)", endsWith(/\.keras$/i), "model.export('model.onnx', format='onnx') in Python"],
  [
    "a ZIP archive, as PyTorch writes it",
    startsWith("PK"),
    "torch.onnx.export(model, args, 'model.onnx') in Python",
  ],
  [
    "a pickle of Python",
    startsWith("\x80"),
    "python sklearn_to_json.py model.pkl model.json, of scikit-learn, or torch.onnx.export",
  ],
  ["GGUF", startsWith("GGUF"), "the ONNX export of the model that it was made from"],
  [
    "TensorFlow Lite",
    startsWith("TFL3", 4),
    "python -m tf2onnx.convert --tflite model.tflite --output model.onnx",
  ],
  ["ONNX Runtime's own format", startsWith("ORTM", 4), "the ONNX file that it was made from"],
  ["safetensors", endsWith(/\.safetensors$/i), "optimum-cli export onnx --model <directory> <folder>"],
  ["OpenVINO", startsWith("<?xml"), "the ONNX export of the model that it was made from"],
  [
    "a frozen graph of TensorFlow",
    endsWith(/\.pb$/i),
    "python -m tf2onnx.convert --graphdef model.pb --output model.onnx",
  ],
];

/** Longest start of a file by which a format is recognised. */
const HEAD = 64;

/**
 * Finds the ONNX file of a model: the file itself, the `model.onnx` of a directory, or what an importer makes.
 *
 * @param folder for files that importers write
 * @throws TritonError NOT_FOUND for a missing file, UNSUPPORTED for a format that is not read, with what to do
 */
export async function importModel(
  path: string,
  folder: string,
  options: ImportOptions = {},
): Promise<string> {
  const place = await placeOf(path);
  const importer = IMPORTERS.find((one) => one.recognizes(place));
  if (importer !== undefined) return importer.toOnnx(path, folder, options);
  if (place.isDirectory) {
    const inside = join(path, "model.onnx");
    if ((await stat(inside).catch(() => undefined))?.isFile()) return inside;
  }
  const foreign = FOREIGN.find(([, is]) => is(place));
  if (foreign === undefined) return path;
  const [name, , advice] = foreign;
  throw errorFor(
    "MODEL_NOT_SUPPORTED",
    `model '${path}': expected an ONNX file, got ${name}; convert it: ${advice}`,
  );
}

async function placeOf(path: string): Promise<ImportPlace> {
  const head = Buffer.alloc(HEAD);
  try {
    if ((await stat(path)).isDirectory()) return { path, isDirectory: true, head: head.subarray(0, 0) };
    const file = await open(path, "r");
    try {
      const { bytesRead } = await file.read(head, 0, HEAD, 0);
      return { path, isDirectory: false, head: head.subarray(0, bytesRead) };
    } finally {
      await file.close();
    }
  } catch (error) {
    const text = `model '${path}': expected a file or directory, cannot read it: ${(error as Error).message}`;
    const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
    throw errorFor(isMissing ? "MODEL_FILES_NOT_FOUND" : "FILE_NOT_READABLE", text, { cause: error });
  }
}
