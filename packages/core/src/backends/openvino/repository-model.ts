import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import type { BackendFactory, ModelSource } from "../../instance/backend.js";
import { findModelFile } from "../model-file.js";
import { onnxRuntimeBackend } from "../onnxruntime/repository-model.js";

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
export const openvinoBackend: BackendFactory = async (source) => {
  const { config, name } = source;
  assertPlaced(config);
  const { path } = await findModelFile(source, ["model.xml"]);
  if (!path.endsWith(".onnx")) throw refused(source, path);
  const { parameters, ignored } = forOnnxRuntime(config);
  source.warn(`model '${name}': ONNX Runtime runs this model of backend 'openvino'`);
  if (ignored.length > 0) {
    source.warn(
      `model '${name}': parameters ${ignored.map((key) => `'${key}'`).join(", ")} of OpenVINO have no effect in ONNX Runtime`,
    );
  }
  const made = await onnxRuntimeBackend({ ...source, config: { ...config, parameters } });
  return { ...made, backendName: "openvino", platform: "" };
};

/** Triton's rule, with its text. */
function assertPlaced({ instanceGroup }: ModelConfig): void {
  if (instanceGroup.every(({ kind }) => kind === "KIND_CPU" || kind === "KIND_AUTO")) return;
  throw new TritonError("INVALID_ARG", "Triton OpenVINO backend supports only Kind CPU and AUTO", {
    reason: "INVALID_CONFIG",
  });
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
function refused({ name }: ModelSource, path: string): TritonError {
  const how = path.endsWith(".pdmodel")
    ? `convert it: ${PADDLE}`
    : path.endsWith(".saved_model")
      ? `convert it: ${SAVED_MODEL}`
      : "no program converts OpenVINO's own format back, so export the model that it was made from: torch.onnx.export, " +
        `${SAVED_MODEL}, ${PADDLE}`;
  return new TritonError(
    "UNSUPPORTED",
    `model '${name}': '${path}' runs only in OpenVINO, which has no package for Node that installs without a download; ` +
      `${how}; then put model.onnx into the version directory and set default_model_filename: "model.onnx"`,
    { reason: "MODEL_NOT_SUPPORTED" },
  );
}
