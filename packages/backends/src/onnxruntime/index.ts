import { stat } from "node:fs/promises";
import { join } from "node:path";
import {
  type Backend,
  type BackendFactory,
  findModelFile,
  hostingOf,
  type ModelFiles,
  type ModelLocation,
} from "@tritonjs/core/backend";
import { notFound } from "@tritonjs/core/internal";
import { assertInside, linkedDirectories } from "@tritonjs/core/internal/worker";
import { assertOptions, errorFor, type ModelConfig, type TritonError } from "@tritonjs/protocol";
import { readFileInThread } from "../description/describe-in-worker.js";
import { configBeside } from "./class-names.js";
import { read } from "./describe-onnx-model.js";
import { mayBeNative, OnnxBackend } from "./onnx-backend.js";
import { checkExternalData } from "./onnx-file.js";
import { ONNX_OPTION_TYPES, type OnnxRuntimeOptions, onnxOptionsOf, quoted } from "./onnx-options.js";
import { ONNX_PARAMETERS, PROVIDER_OPTIONS } from "./onnx-parameters.js";
import { precisionForm, requestedPrecision } from "./precision-form.js";

export { describeLibraries, diagnoseGpus, hasNothingOfNvidia } from "./examined-gpus.js";
export type { DescribedLibrary } from "./native/diagnose-gpus.js";
export type { GpuFinding } from "./native/gpu-doctor.js";
export { hashOfModel } from "./onnx-file.js";
export type { OnnxEngine, OnnxRuntimeOptions } from "./onnx-options.js";
export { OnnxSession, type OnnxSessionOptions, openSession } from "./onnx-session.js";
export type { ExecutionProvider } from "./provider-names.js";

/**
 * A backend that runs an ONNX model with ONNX Runtime. By default each instance is a worker thread with a session of
 * its own; `engine` has the alternative.
 * Inputs, outputs and whether the model can batch (all first dimensions variable) come from the file when `bind` does
 * not get them. Where the file leaves out the shape of an output, `bind` waits for a worker in which ONNX Runtime
 * infers it.
 *
 * @throws TritonError at `bind` for a missing file (NOT_FOUND), a file that is not an ONNX model (INVALID_ARG), types
 * that cannot pass through Node (UNSUPPORTED), and shapes that cannot be inferred because the model does not load
 * (INVALID_ARG).
 * @example
 * ```ts
 * triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: "iris.onnx" }) });
 * ```
 */
export function onnxruntime(options: OnnxRuntimeOptions): Backend {
  assertOptions("onnxruntime()", options, ONNX_OPTION_TYPES, {}, ["model"]);
  return new OnnxBackend(options);
}

/** The backend `onnxruntime` for models of a repository: `<version>/model.onnx`, or a directory with such a file. */
const onnxRuntimeBackend = ONNX_PARAMETERS.declaredBy(
  (source) => openRepositoryModel(source),
  PROVIDER_OPTIONS,
);

async function openRepositoryModel(source: ModelFiles, backendName?: string): Promise<OnnxBackend> {
  const model = await modelFile(source);
  await assertInside(source.directory, configBeside(model), linkedDirectories(source.settings));
  const { size: bytes } = await stat(model);
  const found = { what: `the ONNX model '${model}'`, bytes, entry: READER, data: model };
  const { file, locations } = await readFileInThread(found, () => read(model));
  await checkExternalData(source.directory, model, locations, source.settings);
  const { config, settings, warn } = source;
  const precision = requestedPrecision(config);
  const defaulted = config.input.find(({ optional }) => optional);
  if (precision !== undefined && defaulted !== undefined) {
    const text = `precision_mode ${precision}: expected no optional input, because another form keeps no default, got '${defaulted.name}'`;
    throw errorFor("INVALID_CONFIG", text);
  }
  const form = precision === undefined ? model : await precisionForm(model, precision, settings);
  const options = { model: form, onWarning: warn, ...onnxOptionsOf(config, settings) };
  const hosting = hostingOf(source, ["worker", "process"], !mayBeNative(options));
  return new OnnxBackend(options, hosting, backendName, form === model ? file : undefined);
}

const READER = new URL("./describe-onnx-model.js", import.meta.url);

async function modelFile(source: ModelLocation): Promise<string> {
  const { path, isDirectory } = await findModelFile(source, ["model.onnx"], notStatted);
  if (!isDirectory) return path;
  const inside = join(path, "model.onnx");
  const found = await stat(inside).catch(() => undefined);
  if (!found?.isFile()) throw notFound(inside, source.name);
  await assertInside(source.directory, inside, linkedDirectories(source.settings));
  return inside;
}

/** Triton's onnxruntime backend first checks whether the file is a directory. */
function notStatted(path: string): TritonError {
  return errorFor("FILE_NOT_READABLE", `failed to stat file ${path}`);
}

/** Parameters of Triton's openvino backend that ONNX Runtime has under another name. */
const MAPPED: Readonly<Record<string, string>> = { INFERENCE_NUM_THREADS: "intra_op_thread_count" };

/** Its other parameters. They choose devices and plans of OpenVINO, or work around its fixed batch sizes. */
const IGNORED: readonly string[] = [
  "TARGET_DEVICE",
  "PERFORMANCE_HINT",
  "NUM_STREAMS",
  "COMPILATION_NUM_THREADS",
  "HINT_BF16",
  "CPU_EXTENSION_PATH",
  "SKIP_OV_DYNAMIC_BATCHSIZE",
  "ENABLE_BATCH_PADDING",
  "RESHAPE_IO_LAYERS",
];

/**
 * The backend `openvino` for models of a repository. ONNX Runtime runs its ONNX models: `default_model_filename:
 * "model.onnx"`. Other models are refused; the reason names the conversion.
 */
const openvinoBackend = ONNX_PARAMETERS.declaredBy(async (source) => {
  const { config, name } = source;
  assertPlaced(config);
  const { path } = await findModelFile(source, ["model.xml"]);
  if (!path.endsWith(".onnx")) throw refused(source, path);
  const { parameters, ignored } = forOnnxRuntime(config);
  source.warn(`model '${name}': ONNX Runtime runs this model of backend 'openvino'`);
  if (ignored.length > 0) {
    source.warn(`model '${name}': parameters ${quoted(ignored)} of OpenVINO have no effect in ONNX Runtime`);
  }
  return openRepositoryModel({ ...source, config: { ...config, parameters } }, "openvino");
}, PROVIDER_OPTIONS);

function assertPlaced({ instanceGroup }: ModelConfig): void {
  if (instanceGroup.every(({ kind }) => kind === "KIND_CPU" || kind === "KIND_AUTO")) return;
  throw errorFor("INVALID_CONFIG", "Triton OpenVINO backend supports only Kind CPU and AUTO");
}

/** The parameters as ONNX Runtime has them, and the names of the parameters without effect there. */
function forOnnxRuntime({ parameters }: ModelConfig) {
  const entries = Object.entries(parameters)
    .filter(([key]) => !IGNORED.includes(key))
    .map(([key, value]) => [Object.hasOwn(MAPPED, key) ? MAPPED[key]! : key, value] as const);
  return {
    parameters: Object.fromEntries(entries),
    ignored: IGNORED.filter((key) => Object.hasOwn(parameters, key)),
  };
}

const PADDLE = "paddle2onnx --model_dir <directory> --model_filename model.pdmodel --save_file model.onnx";
const SAVED_MODEL = "python -m tf2onnx.convert --saved-model <directory> --output model.onnx";

/** The error for a file that only OpenVINO reads: what to convert, and by which command. */
function refused({ name }: ModelFiles, path: string): TritonError {
  const how = path.endsWith(".pdmodel")
    ? `convert it: ${PADDLE}`
    : path.endsWith(".saved_model")
      ? `convert it: ${SAVED_MODEL}`
      : "no program converts OpenVINO's own format back, so export the model that it was made from: torch.onnx.export, " +
        `${SAVED_MODEL}, ${PADDLE}`;
  const text =
    `model '${name}': '${path}' runs only in OpenVINO, which has no package for Node that installs without a download; ` +
    `${how}; then put model.onnx into the version directory and set default_model_filename: "model.onnx"`;
  return errorFor("MODEL_NOT_SUPPORTED", text);
}

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = {
  onnxruntime: onnxRuntimeBackend,
  openvino: openvinoBackend,
};
