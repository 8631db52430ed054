import type { BackendFactory } from "../instance/backend.js";
import { javascriptBackend } from "./javascript/index.js";
import { onnxRuntimeBackend } from "./onnxruntime/repository-model.js";
import { openvinoBackend } from "./openvino/repository-model.js";
import { pythonBackend } from "./python/repository-model.js";
import { pytorchBackend } from "./python/torch-model.js";
import { tensorflowBackend } from "./tensorflow/repository-model.js";
import { identityBackend } from "./testing/identity.js";
import { repeatBackend } from "./testing/repeat.js";
import { squareBackend } from "./testing/square.js";

/** Backends that are registered without the program doing so. */
export const BUILT_IN: Readonly<Record<string, BackendFactory>> = {
  javascript: javascriptBackend,
  onnxruntime: onnxRuntimeBackend,
  openvino: openvinoBackend,
  python: pythonBackend,
  pytorch: pytorchBackend,
  tensorflow: tensorflowBackend,
  identity: identityBackend,
  repeat: repeatBackend,
  square: squareBackend,
};

/** Backends of packages that are loaded when the first model names them. */
export const PACKAGED: Readonly<Record<string, string>> = {
  fil: "@tritonjs/trees",
  image: "@tritonjs/media",
  audio: "@tritonjs/media",
  remote: "@tritonjs/client/remote",
  text_generation: "@tritonjs/text-generation",
};

/** Backends that also have the settings of another one, which runs their models. */
export const RUN_BY: Readonly<Record<string, string>> = { pytorch: "python", openvino: "onnxruntime" };

/** Backends that may run a file `model.py` of a model, which `runtime` requests. */
export const WITH_PYTHON_RUNTIME: readonly string[] = ["pytorch"];

/** Backend of a configuration that has only a platform. */
export const BY_PLATFORM: Readonly<Record<string, string>> = {
  onnxruntime_onnx: "onnxruntime",
  tensorflow_graphdef: "tensorflow",
  tensorflow_savedmodel: "tensorflow",
  tensorflow_tfjs: "tensorflow",
  tensorrt_plan: "tensorrt",
  pytorch_libtorch: "pytorch",
  libtorch: "pytorch",
  torch_aoti: "pytorch",
};

/** How to run models of Triton's other backends here. */
export const CONVERSIONS: Readonly<Record<string, string>> = {
  tensorrt:
    "a plan runs only in TensorRT; put the ONNX file that it was built from (trtexec --onnx=<file>) into the version " +
    "directory as model.onnx, use backend 'onnxruntime' without a platform, and for TensorRT's kernels " +
    'optimization { execution_accelerators { gpu_execution_accelerator [ { name: "tensorrt" } ] } }',
  dali:
    "decode and resize images with the backend 'image' of @tritonjs/media or in a JavaScript model, as a step of an " +
    "ensemble",
  vllm:
    "copy the folder src of vLLM's backend (github.com/triton-inference-server/vllm_backend) to <backend directory>/vllm " +
    "and set backendDirectory (--backend-directory), or run 'vllm serve <model>' and call it from a JavaScript model",
  tensorrtllm: "run 'trtllm-serve <model>' and call it from a JavaScript model",
};
