import { spawn } from "node:child_process";
import { open, readFile, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type DataType, errorFor, Tensor, TritonError } from "@tritonjs/protocol";
import { sklearnImporter } from "./import-sklearn.js";
import type { ImportOptions, ImportPath, ModelImporter } from "./model-importer.js";
import { ModelRunner } from "./model-runner.js";

const startsWith =
  (text: string, at = 0) =>
  ({ head }: ImportPath) =>
    head.subarray(at, at + text.length).toString("latin1") === text;

const endsWith =
  (pattern: RegExp) =>
  ({ path }: ImportPath) =>
    pattern.test(path);

/** Formats that are known, but not read, with what to do. */
const FOREIGN: readonly (readonly [name: string, is: (found: ImportPath) => boolean, advice: string])[] = [
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
  const found = await readPath(path);
  const importer = IMPORTERS.find((one) => one.recognizes(found));
  if (importer !== undefined) return importer.toOnnx(path, folder, options);
  if (found.isDirectory) {
    const inside = join(path, "model.onnx");
    if ((await stat(inside).catch(() => undefined))?.isFile()) return inside;
  }
  const foreign = FOREIGN.find(([, is]) => is(found));
  if (foreign === undefined) return path;
  const [name, , advice] = foreign;
  throw errorFor(
    "MODEL_NOT_SUPPORTED",
    `model '${path}': expected an ONNX file, got ${name}; convert it: ${advice}`,
  );
}

async function readPath(path: string): Promise<ImportPath> {
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

const SCRIPT = fileURLToPath(new URL("../../python/export/torch_to_onnx.py", import.meta.url));

/** Operator set of exported models: the last that PyTorch 1.13 writes. */
const OPSET = 16;

/** Largest difference to the outputs of PyTorch, as a share of parts above 1. */
const TOLERANCE = 1e-4;

/** What the script wrote of one run. */
interface WrittenSample {
  readonly inputs: readonly WrittenTensor[];
  readonly outputs: readonly WrittenTensor[];
}

interface WrittenTensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Elements in Base64, little-endian. */
  readonly data: string;
}

/**
 * TorchScript and programs of `torch.export`, by a Python with PyTorch. The exported model is checked with runs of
 * PyTorch, of two and of three rows. A model whose graph fits one number of rows is exported again for one row.
 */
const torchImporter: ModelImporter = {
  format: "PyTorch",
  recognizes: ({ path, isDirectory }: ImportPath) => !isDirectory && /\.(pt|pth|pt2)$/i.test(path),
  async toOnnx(path, folder, options) {
    const target = join(folder, `${basename(path).replace(/\.[^.]*$/, "")}.onnx`);
    try {
      await exportModel(path, target, options, true);
      await check(path, target);
    } catch (error) {
      if (!(error instanceof RowsFixed)) throw error;
      await exportModel(path, target, options, false);
      await check(path, target);
    }
    return target;
  },
};

/** The graph does not take another number of rows. */
class RowsFixed extends Error {}

const fault = (path: string, text: string, cause?: unknown): TritonError =>
  errorFor("MODEL_NOT_SUPPORTED", `cannot export the PyTorch model '${path}' to ONNX: ${text}`, { cause });

async function exportModel(
  path: string,
  target: string,
  { python = process.env.TRITONJS_PYTHON || "python3", shapes = {}, dtypes = {} }: ImportOptions,
  rows: boolean,
): Promise<void> {
  const entry = ([name, shape]: readonly [string, readonly number[]]) => {
    const whole = rows ? shape : [1, ...shape];
    return [name, { shape: whole, dtype: dtypes[name] ?? "FP32" }] as const;
  };
  const inputs = Object.fromEntries(Object.entries(shapes).map(entry));
  const { code, errors } = await runPython(python, [SCRIPT, path, target], {
    inputs,
    rows,
    opset: OPSET,
  }).catch((error: Error) => {
    throw fault(path, `${missing(python, error.message)}`, error);
  });
  if (code === 0) return;
  const said = errors
    .split("\n")
    .findLast((line) => line.startsWith("error: "))
    ?.slice("error: ".length);
  if (said?.startsWith("no torch: ")) throw fault(path, missing(python, said.slice("no torch: ".length)));
  // A graph for one number of rows may fail in the run of another.
  if (rows && (said?.startsWith("PyTorch: ") || said?.startsWith("an output has no row")))
    throw new RowsFixed(said);
  throw fault(path, said ?? `'${python}' ended with ${code}: ${errors.trim().split("\n").at(-1)}`);
}

const missing = (python: string, why: string): string =>
  `expected a Python with torch, got ${why} from '${python}'; install it (pip install torch, or apt-get install ` +
  "python3-torch), or name a Python that has it by --python or TRITONJS_PYTHON";

function runPython(
  python: string,
  args: readonly string[],
  settings: object,
): Promise<{ readonly code: number | null; readonly errors: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(python, args, { stdio: ["pipe", "ignore", "pipe"] });
    let errors = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-65_536);
    });
    // A child that ends at once does not read its input.
    child.stdin.on("error", () => {});
    child.stdin.end(JSON.stringify(settings));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, errors }));
  });
}

/** Runs the exported model on the inputs that PyTorch ran on, and compares the outputs. */
async function check(path: string, onnx: string): Promise<void> {
  const samples = JSON.parse(await readFile(`${onnx}.samples.json`, "utf8")) as readonly WrittenSample[];
  const runner = await ModelRunner.open(onnx);
  try {
    for (const [i, { inputs, outputs }] of samples.entries()) {
      const given = new Map(inputs.map((one) => [one.name, tensorOf(one)]));
      // Constants can make an input superfluous, which the export then leaves out.
      for (const name of given.keys())
        if (!runner.inputs.some((one) => one.name === name)) given.delete(name);
      const results = await runner.run(given).catch((error: unknown) => {
        if (i > 0) throw new RowsFixed(TritonError.from(error).message, { cause: error });
        throw error;
      });
      for (const output of outputs) {
        const difference = differenceOf(tensorOf(output), results.get(output.name));
        if (difference <= TOLERANCE) continue;
        if (i > 0 && !Number.isFinite(difference)) throw new RowsFixed(output.name);
        throw fault(
          path,
          `output '${output.name}': expected the values of PyTorch, got a relative difference of ${difference}`,
        );
      }
    }
  } finally {
    await runner.close();
  }
}

function tensorOf({ dtype, shape, data }: WrittenTensor): Tensor {
  return Tensor.fromBytes(dtype as DataType, shape, new Uint8Array(Buffer.from(data, "base64")));
}

/** Largest difference as a share of parts above 1; infinite for other shapes. */
function differenceOf(expected: Tensor, given: Tensor | undefined): number {
  if (given === undefined || String(given.shape) !== String(expected.shape)) return Number.POSITIVE_INFINITY;
  const [a, b] = [expected.elements as ArrayLike<unknown>, given.elements as ArrayLike<unknown>];
  let largest = 0;
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [Number(a[i]), Number(b[i])];
    if (Object.is(x, y)) continue;
    const difference = Math.abs(x - y) / Math.max(1, Math.abs(x));
    if (!(difference <= largest)) largest = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
  }
  return largest;
}

/** All importers. The first that recognises a model reads it. */
const IMPORTERS: readonly ModelImporter[] = [sklearnImporter, torchImporter];
