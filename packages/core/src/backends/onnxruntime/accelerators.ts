import { type ModelConfig, TritonError } from "@tritonjs/protocol";

import type { ExecutionProvider } from "./options.js";
import { checkTensorrtParameters } from "./tensorrt-parameters.js";

/** Options that onnxruntime-node passes on to WebGPU, and takes no others. */
const WEBGPU = [
  "preferredLayout",
  "validationMode",
  "storageBufferCacheMode",
  "uniformBufferCacheMode",
  "queryResolveBufferCacheMode",
  "defaultBufferCacheMode",
];

/** Providers that may be asked for, with the options that onnxruntime-node passes on to them. */
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
 * The providers that `optimization.execution_accelerators` ask for, by ONNX Runtime's names; those of GPUs before
 * those of the CPU, the plain device last.
 *
 * @param warn told of options that have no effect here
 * @returns undefined when none is asked for
 * @throws TritonError INVALID_ARG for a provider or a parameter that there is not, with Triton's text
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
