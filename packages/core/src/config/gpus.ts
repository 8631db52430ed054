import type { DataType, Shape, Tensor } from "@tritonjs/protocol";

/** The GPUs of a server, as an extension brings them: `gpu()` of `@tritonjs/backends/gpu`. */
export interface Gpus {
  /** Numbers of the GPUs on which instances may be placed. Undefined if no instance can run on a GPU. */
  readonly numbers: readonly number[] | undefined;
  /** Whether instances of KIND_GPU of a model run on the CPU, because there is no GPU. @default none do */
  runsOnCpu?(model: string): boolean;
  /** What libraries call a GPU. @default what they call the CPU */
  namesOf?(id: number): DeviceNames;
  /** Pinned memory for tensors on their way to GPUs, in bytes, which the metrics show. @default none */
  readonly pinnedMemory?: { readonly total: number; readonly used: number };
  /** Memory of GPUs that clients share. @default none can */
  readonly regions?: GpuRegions;
}

/** What libraries that a callback opens call a device. */
export interface DeviceNames {
  /**
   * Execution providers of ONNX Runtime, by preference: that of the GPU, then `cpu`.
   * @example
   * ```ts
   * await InferenceSession.create("model.onnx", { executionProviders: context.device.executionProviders });
   * ```
   */
  readonly executionProviders: readonly (string | { readonly name: string; readonly deviceId: number })[];
  /** Name of the device in PyTorch and in libraries that follow it. */
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

/** A server without GPUs. */
export const NO_GPUS: Gpus = { numbers: undefined };

/** A region of a GPU's memory that a client wants to register. */
export interface GpuRegionRequest {
  /** Handle by which processes share the memory. */
  readonly rawHandle: Uint8Array;
  readonly deviceId: number;
  readonly byteSize: number | bigint;
}

/** Maps memory of GPUs that clients share. */
export interface GpuRegions {
  /** URL of a module whose export `gpuRegions` is this object. Frontends in other threads load it. */
  readonly module: string;
  /** False if this machine has no GPU. */
  isAvailable(): boolean;
  /**
   * Maps memory of another process into this one.
   *
   * @param name name of the region, for errors
   * @throws TritonError INVALID_ARG for an invalid handle, and for a size beyond the allocation
   */
  open(name: string, request: GpuRegionRequest): MappedGpuMemory;
  /** Uses memory that another thread of this process has mapped, and unmaps. */
  attach(deviceId: number, address: bigint, byteSize: number): MappedGpuMemory;
}

/** Memory of a GPU that this process has mapped. Its contents are copied. */
export interface MappedGpuMemory {
  /** Its beginning on the GPU. */
  readonly address: bigint;
  byteSize(): number;
  /** Copies from an offset in the memory. Returns false when the memory ends too early. */
  read(at: number, into: Uint8Array): boolean;
  /** Copies to an offset in the memory. Returns false when the memory ends too early. */
  write(at: number, bytes: Uint8Array): boolean;
  /**
   * A tensor whose elements stay on the GPU until they are read; undefined if this thread has not mapped the memory.
   *
   * @param at offset of its first element
   */
  tensor(
    datatype: Exclude<DataType, "BYTES">,
    shape: Shape,
    at: number,
    hold: HoldGpuMemory,
  ): Tensor | undefined;
  close(): void;
}

/** Keeps memory mapped until it is released. Undefined if it is gone. */
export type HoldGpuMemory = () => { release(): void } | undefined;
