import { type ModelConfig, TritonError } from "@tritonjs/protocol";

import type { ExecutionProvider } from "./options.js";
import { checkTensorrtParameters } from "./tensorrt-parameters.js";

/** The only options that onnxruntime-node passes on to WebGPU. */
const WEBGPU = [
  "preferredLayout",
  "validationMode",
  "storageBufferCacheMode",
  "uniformBufferCacheMode",
  "queryResolveBufferCacheMode",
  "defaultBufferCacheMode",
];

/** Allowed providers, with the options that onnxruntime-node passes on to them. */
const PROVIDERS: Readonly<Record<string, readonly string[]>> = {
  tensorrt: [],
  cuda: [],
  webgpu: WEBGPU,
  dml: [],
  coreml: [],
  qnn: ["backendType", "backendPath"],
  xnnpack: [],
  openvino: [],
  cpu: [],
};

/**
 * The providers that `optimization.execution_accelerators` requests, by ONNX Runtime's names. GPU providers come before
 * CPU providers; the plain device is last.
 *
 * @param warn called with a warning for each option that has no effect here
 * @returns undefined when none is requested
 * @throws TritonError INVALID_ARG for an unknown provider or parameter, with Triton's text
 */
export function accelerators(
  { name: model, optimization, instanceGroup }: ModelConfig,
  warn: (message: string) => void,
): ExecutionProvider[] | undefined {
  const { gpuExecutionAccelerator: gpu = [], cpuExecutionAccelerator: cpu = [] } =
    optimization?.executionAccelerators ?? {};
  const onGpu = instanceGroup.some(({ kind }) => kind === "KIND_GPU" || kind === "KIND_MODEL");
  const asked = [...(onGpu ? gpu : []), ...cpu];
  if (asked.length === 0) return undefined;
  const providers = asked.map(({ name, parameters = {} }): ExecutionProvider => {
    const options = Object.hasOwn(PROVIDERS, name) ? PROVIDERS[name] : undefined;
    if (options === undefined) {
      throw new TritonError("INVALID_ARG", `unknown Execution Accelerator '${name}' is requested`, {
        reason: "INVALID_CONFIG",
      });
    }
    if (name === "tensorrt") checkTensorrtParameters(parameters);
    const unused = Object.keys(parameters).filter((key) => !options.includes(key));
    if (unused.length > 0) {
      warn(
        `model '${model}': onnxruntime-node does not pass ${unused.map((key) => `'${key}'`).join(", ")} to execution ` +
          `provider '${name}'`,
      );
    }
    const used = Object.entries(parameters).filter(([key]) => options.includes(key));
    return used.length === 0 ? name : { name, ...Object.fromEntries(used) };
  });
  return [...providers, ...(onGpu ? ["cuda"] : []), "cpu"];
}
