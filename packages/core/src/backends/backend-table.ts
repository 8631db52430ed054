import { type ModelConfig, TritonError } from "@tritonjs/protocol";

import type { BackendFactory } from "../instance/backend.js";
import { importInstalled } from "../unbundled.js";
import { javascriptBackend } from "./javascript/index.js";
import { onnxRuntimeBackend } from "./onnxruntime/repository-model.js";
import { pythonBackend } from "./python/repository-model.js";
import { tensorflowBackend } from "./tensorflow/repository-model.js";
import { identityBackend } from "./testing/identity.js";
import { repeatBackend } from "./testing/repeat.js";
import { squareBackend } from "./testing/square.js";

/** Backends that are registered without the program doing so. */
const BUILT_IN: Readonly<Record<string, BackendFactory>> = {
  javascript: javascriptBackend,
  onnxruntime: onnxRuntimeBackend,
  python: pythonBackend,
  tensorflow: tensorflowBackend,
  identity: identityBackend,
  repeat: repeatBackend,
  square: squareBackend,
};

/** Backends of packages that are loaded when the first model names them. */
const PACKAGED: Readonly<Record<string, string>> = {
  fil: "@tritonjs/trees",
  image: "@tritonjs/media",
  audio: "@tritonjs/media",
  remote: "@tritonjs/client/remote",
  text_generation: "@tritonjs/text-generation",
};

/** What a package of {@link PACKAGED} exports. */
interface BackendPackage {
  readonly repositoryBackends: Readonly<Record<string, BackendFactory>>;
}

/** Backend of a configuration that has only a platform. */
const BY_PLATFORM: Readonly<Record<string, string>> = {
  onnxruntime_onnx: "onnxruntime",
  tensorflow_graphdef: "tensorflow",
  tensorflow_savedmodel: "tensorflow",
  tensorflow_tfjs: "tensorflow",
  tensorrt_plan: "tensorrt",
  pytorch_libtorch: "pytorch",
};

/** How to convert models of Triton's other backends for this server. */
const CONVERSIONS: Readonly<Record<string, string>> = {
  tensorrt:
    "export the model that the plan was built from to ONNX (model.onnx) and use backend 'onnxruntime'",
  pytorch: "export the model with torch.onnx.export to model.onnx and use backend 'onnxruntime'",
  openvino: "convert the model to ONNX (model.onnx) and use backend 'onnxruntime'",
  dali: "do the pre-processing in a JavaScript callback and make it a step of an ensemble",
  vllm: "serve the model with vLLM and call it from a JavaScript callback",
  tensorrtllm: "serve the model with TensorRT-LLM and call it from a JavaScript callback",
};

/**
 * Finds the backend of a model: by `backend`, or by `platform` in Triton's words.
 *
 * @param users backends that the program registered; they come before those of the library
 * @throws TritonError INVALID_ARG for an unknown backend; the text says how to convert the model where that is
 * possible.
 */
export function findBackend(
  { backend, platform }: ModelConfig,
  users: Readonly<Record<string, BackendFactory>>,
): BackendFactory {
  const name = backend !== "" ? backend : (BY_PLATFORM[platform] ?? platform);
  const factory = own(users, name) ?? own(BUILT_IN, name);
  if (factory !== undefined) return factory;
  const packageName = own(PACKAGED, name);
  if (packageName !== undefined) return fromPackage(packageName, name);
  const conversion = own(CONVERSIONS, name);
  const hint = conversion === undefined ? "" : ` There is none for '${name}' here: ${conversion}.`;
  throw new TritonError(
    "INVALID_ARG",
    `unable to find backend library for backend '${name}', try specifying runtime on the model configuration.${hint}`,
    { reason: "INVALID_CONFIG" },
  );
}

function fromPackage(packageName: string, name: string): BackendFactory {
  return async (source) => {
    const found = await importInstalled<BackendPackage>(packageName);
    if (found !== undefined) return found.repositoryBackends[name]!(source);
    throw new TritonError(
      "UNAVAILABLE",
      `the backend '${name}' of model '${source.name}' needs a package: install ${packageName}`,
      { reason: "PACKAGE_NOT_INSTALLED" },
    );
  };
}

function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
