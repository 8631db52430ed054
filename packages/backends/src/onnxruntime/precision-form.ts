import { mkdir, stat, utimes } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { errorFor, type ModelConfig, TritonError } from "@tritonjs/protocol";
import { hasVnni } from "../onnx-graph/processor.js";
import { hashOfModel } from "./onnx-file.js";
import { canonicalName } from "./provider-names.js";

/** A precision into which a model is rewritten when it loads. */
type Precision = "FP16" | "INT8";

/** Changes when the rewriting does, so that a cache never serves forms of another version. */
const FORMAT = 1;

/** Accelerators whose `precision_mode` rewrites the model. TensorRT has a precision of its own. */
const REWRITTEN: ReadonlySet<string> = new Set(["cpu", "cuda"]);

/**
 * The precision that `optimization.execution_accelerators` asks for: `precision_mode` of the accelerator `cpu` or `cuda`,
 * with the words of Triton's TensorRT.
 *
 * @returns undefined for FP32 and for none
 * @throws TritonError INVALID_ARG for another word, and for two precisions
 */
export function requestedPrecision({ optimization, instanceGroup }: ModelConfig): Precision | undefined {
  const { gpuExecutionAccelerator: gpu = [], cpuExecutionAccelerator: cpu = [] } =
    optimization?.executionAccelerators ?? {};
  const onGpu = instanceGroup.some(({ kind }) => kind === "KIND_GPU" || kind === "KIND_MODEL");
  const words = new Set(
    [...(onGpu ? gpu : []), ...cpu]
      .filter(({ name }) => REWRITTEN.has(canonicalName(name)))
      .flatMap(({ parameters }) => parameters?.precision_mode ?? []),
  );
  for (const word of words) {
    if (!["FP32", "FP16", "INT8"].includes(word)) {
      throw errorFor("INVALID_CONFIG", `unsupported precision mode '${word}' is requested`);
    }
  }
  if (words.size > 1) {
    const text = `precision_mode of the execution accelerators: expected one for all, got ${[...words].join(" and ")}`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const [word] = words;
  return word === "FP16" || word === "INT8" ? word : undefined;
}

/** Where forms are kept: the setting `optimization-cache` of the backend, else a folder of the user's cache. */
function cacheFolder(settings: Readonly<Record<string, string>>): string {
  const given = settings["optimization-cache"];
  if (given !== undefined) return given;
  return join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "tritonjs", "optimized");
}

/**
 * The file of a model in a precision. It is made in a thread the first time, and found by the hash of the model after
 * that, by other models and other processes too.
 *
 * @throws TritonError INVALID_ARG for a model in which nothing has another form; UNAVAILABLE if the cache cannot be
 * written
 */
export async function precisionForm(
  model: string,
  precision: Precision,
  settings: Readonly<Record<string, string>>,
): Promise<string> {
  const folder = cacheFolder(settings);
  // Other processors get weights of 7 bits.
  const form = `${precision.toLowerCase()}${precision === "INT8" && !hasVnni() ? "-7" : ""}-${FORMAT}`;
  const file = join(folder, `${await hashOfModel(model)}-${form}.onnx`);
  if ((await stat(file).catch(() => undefined))?.isFile()) {
    // The time of the last use, for those who clear the cache.
    await utimes(file, new Date(), new Date()).catch(() => {});
    return file;
  }
  try {
    await mkdir(folder, { recursive: true });
  } catch (error) {
    const text =
      `cannot make the folder '${folder}' for forms of models: ${(error as Error).message}; set another one by ` +
      "--backend-config=onnxruntime,optimization-cache=<folder>";
    throw errorFor("FILE_NOT_WRITTEN", text, { cause: error });
  }
  await inThread({ model, file, precision });
  return file;
}

/** The task of the thread that rewrites a model. */
export interface PrecisionTask {
  readonly model: string;
  readonly file: string;
  readonly precision: Precision;
}

/** Last message of the thread. */
export type PrecisionAnswer = { readonly code: TritonError["code"]; readonly message: string } | undefined;

function inThread(task: PrecisionTask): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./precision-worker.js", import.meta.url), { workerData: task });
    let answer: PrecisionAnswer;
    worker.once("message", (message: PrecisionAnswer) => {
      answer = message;
    });
    worker.once("error", (error) => reject(TritonError.from(error)));
    worker.once("exit", () => {
      if (answer === undefined) resolve();
      else reject(new TritonError(answer.code, answer.message));
    });
  });
}
