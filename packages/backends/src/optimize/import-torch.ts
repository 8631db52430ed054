import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type DataType, errorFor, Tensor, TritonError } from "@tritonjs/protocol";
import type { ImportOptions, ImportPlace, ModelImporter } from "./model-importer.js";
import { ModelRunner } from "./model-runner.js";

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
export const torchImporter: ModelImporter = {
  format: "PyTorch",
  recognizes: ({ path, isDirectory }: ImportPlace) => !isDirectory && /\.(pt|pth|pt2)$/i.test(path),
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
