import { process } from "#host";

/** The place of an instance. */
export interface InstancePlace {
  readonly kind: "KIND_CPU" | "KIND_GPU" | "KIND_MODEL";
  /** Number of the GPU; 0 for other kinds. */
  readonly id: number;
}

/** Where an instance runs, in the words of the libraries that a callback opens there. */
export interface InstanceDevice extends InstancePlace {
  /**
   * Execution providers of ONNX Runtime, by preference: `cuda` on this GPU, then `cpu`.
   * @example
   * ```ts
   * await InferenceSession.create("model.onnx", { executionProviders: context.device.executionProviders });
   * ```
   */
  readonly executionProviders: readonly (string | { readonly name: string; readonly deviceId: number })[];
  /** Name of the device in PyTorch and in libraries that follow it: `cuda:1`, or `cpu`. */
  readonly torch: string;
  /**
   * Environment variables with which a program sees this GPU alone, as its number 0. Empty if the instance is not on a
   * GPU.
   * @example
   * ```ts
   * spawn("python3", ["step.py"], { env: { ...process.env, ...context.device.environment } });
   * ```
   */
  readonly environment: Readonly<Record<string, string>>;
}

/** Describes a place for callbacks. */
export function instanceDevice(kind: InstancePlace["kind"], id: number): InstanceDevice {
  if (kind !== "KIND_GPU") return { kind, id, executionProviders: ["cpu"], torch: "cpu", environment: {} };
  // The number counts the GPUs that this process sees.
  const visible = process.env.CUDA_VISIBLE_DEVICES?.split(",")[id]?.trim();
  return {
    kind,
    id,
    executionProviders: [{ name: "cuda", deviceId: id }, "cpu"],
    torch: `cuda:${id}`,
    environment: { CUDA_VISIBLE_DEVICES: visible || String(id) },
  };
}
