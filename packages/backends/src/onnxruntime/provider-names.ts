import { errorFor } from "@tritonjs/protocol";

/** An execution provider of ONNX Runtime: its name, or its name with options. */
export type ExecutionProvider = string | { readonly name: string; readonly [option: string]: unknown };

/** A provider with its options as ONNX Runtime takes them: texts, byte for byte. */
export interface ProviderRequest {
  readonly name: string;
  readonly options: Readonly<Record<string, string>>;
}

/** How a provider is appended to the options of a session. */
export interface Appending {
  /** Its name in the list of the library. */
  readonly listed: string;
  /** Functions for an options object of its own. */
  readonly own?: "Cuda" | "Tensorrt" | "Rocm" | "Cann" | "Dnnl";
  /** A function that takes keys and values, of newer libraries. */
  readonly keyed?: "appendOpenvino" | "appendVitisai";
  /** Its name for the generic function. */
  readonly generic?: string;
  /** An exported function that takes a number: the device, or flags. Older libraries have no other. */
  readonly exported?: readonly [symbol: string, option: string];
}

/** Execution providers of ONNX Runtime by their names here. */
export const PROVIDERS: Readonly<Record<string, Appending>> = {
  cuda: { listed: "CUDAExecutionProvider", own: "Cuda" },
  tensorrt: { listed: "TensorrtExecutionProvider", own: "Tensorrt" },
  rocm: { listed: "ROCMExecutionProvider", own: "Rocm" },
  cann: { listed: "CANNExecutionProvider", own: "Cann" },
  dnnl: { listed: "DnnlExecutionProvider", own: "Dnnl" },
  openvino: { listed: "OpenVINOExecutionProvider", keyed: "appendOpenvino", generic: "OpenVINO" },
  vitisai: { listed: "VitisAIExecutionProvider", keyed: "appendVitisai", generic: "VitisAI" },
  migraphx: {
    listed: "MIGraphXExecutionProvider",
    generic: "MIGraphX",
    exported: ["OrtSessionOptionsAppendExecutionProvider_MIGraphX", "device_id"],
  },
  dml: {
    listed: "DmlExecutionProvider",
    generic: "DML",
    exported: ["OrtSessionOptionsAppendExecutionProvider_DML", "device_id"],
  },
  coreml: {
    listed: "CoreMLExecutionProvider",
    generic: "CoreML",
    exported: ["OrtSessionOptionsAppendExecutionProvider_CoreML", "coreml_flags"],
  },
  webgpu: { listed: "WebGpuExecutionProvider", generic: "WebGPU" },
  xnnpack: { listed: "XnnpackExecutionProvider", generic: "XNNPACK" },
  qnn: { listed: "QNNExecutionProvider", generic: "QNN" },
  nvtensorrtrtx: { listed: "NvTensorRTRTXExecutionProvider", generic: "NvTensorRtRtx" },
  azure: { listed: "AzureExecutionProvider", generic: "AZURE" },
};

/** Other names of providers, by which users know them. */
const ALIASES: Readonly<Record<string, string>> = { onednn: "dnnl", directml: "dml", trt: "tensorrt" };

/** Whether ONNX Runtime has a provider of this name. A library of a plug-in may have others. */
export function isKnownProvider(name: string): boolean {
  return name === "cpu" || Object.hasOwn(PROVIDERS, canonicalName(name));
}

/** The name of a provider, whichever of its names a user wrote. */
export function canonicalName(name: string): string {
  return Object.hasOwn(ALIASES, name) ? ALIASES[name]! : name;
}

/** Short names of the providers that a library lists: `cuda` for `CUDAExecutionProvider`. */
export function shortNames(listed: readonly string[]): readonly string[] {
  const names = new Map(Object.entries(PROVIDERS).map(([name, provider]) => [provider.listed, name]));
  names.set("CPUExecutionProvider", "cpu");
  return listed.map((one) => names.get(one) ?? one);
}

/**
 * A provider as a model asks for it, with options as texts. The option `deviceId` becomes `device_id`.
 *
 * @throws TritonError INVALID_ARG for an option of a type that has no text, and for a text with a NUL
 */
export function providerRequest(provider: ExecutionProvider): ProviderRequest {
  const { name, deviceId, ...given } = typeof provider === "string" ? { name: provider } : provider;
  const all = deviceId === undefined ? given : { device_id: deviceId, ...given };
  const options = Object.entries(all).map(([key, value]) => [key, optionText(name, key, value)] as const);
  return { name: canonicalName(name), options: Object.fromEntries(options) };
}

function optionText(provider: string, key: string, value: unknown): string {
  const text =
    typeof value === "boolean" ? (value ? "1" : "0") : typeof value === "number" ? String(value) : value;
  if (typeof text === "string" && !text.includes("\0") && !key.includes("\0")) return text;
  const got = typeof text === "string" ? "a text with a NUL" : value === null ? "null" : typeof value;
  throw errorFor(
    "INVALID_CONFIG",
    `option '${key}' of execution provider '${provider}': expected a string, a number or a boolean, got ${got}`,
  );
}
