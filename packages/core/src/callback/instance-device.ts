import type { DeviceNames, Gpus } from "../config/gpus.js";

/** The device of an instance. */
export interface DeviceId {
  readonly kind: "KIND_CPU" | "KIND_GPU" | "KIND_MODEL";
  /** Number of the GPU; 0 for other kinds. */
  readonly id: number;
}

/** Where an instance runs, in the words of the libraries that a callback opens there. */
export interface InstanceDevice extends DeviceId, DeviceNames {}

const CPU: DeviceNames = { executionProviders: ["cpu"], torch: "cpu", environment: {} };

/** Describes a device for callbacks. */
export function instanceDevice(kind: DeviceId["kind"], id: number, gpus?: Gpus): InstanceDevice {
  return { kind, id, ...((kind === "KIND_GPU" && gpus?.namesOf?.(id)) || CPU) };
}
