import { inference } from "@tritonjs/grpc-messages";
import type { CudaRegion, SystemRegion } from "../../options/shared-memory-regions.js";
import { method } from "../carrier/grpc-calls.js";
import type { CallOptions } from "../client-options.js";
import { SettingsCalls } from "./settings-calls.js";

const systemStatus = method(
  "SystemSharedMemoryStatus",
  "reads",
  inference.SystemSharedMemoryStatusRequest,
  inference.SystemSharedMemoryStatusResponse,
);
const systemRegister = method(
  "SystemSharedMemoryRegister",
  "changes",
  inference.SystemSharedMemoryRegisterRequest,
  inference.SystemSharedMemoryRegisterResponse,
);
const systemUnregister = method(
  "SystemSharedMemoryUnregister",
  "changes",
  inference.SystemSharedMemoryUnregisterRequest,
  inference.SystemSharedMemoryUnregisterResponse,
);
const cudaStatus = method(
  "CudaSharedMemoryStatus",
  "reads",
  inference.CudaSharedMemoryStatusRequest,
  inference.CudaSharedMemoryStatusResponse,
);
const cudaRegister = method(
  "CudaSharedMemoryRegister",
  "changes",
  inference.CudaSharedMemoryRegisterRequest,
  inference.CudaSharedMemoryRegisterResponse,
);
const cudaUnregister = method(
  "CudaSharedMemoryUnregister",
  "changes",
  inference.CudaSharedMemoryUnregisterRequest,
  inference.CudaSharedMemoryUnregisterResponse,
);

/** A registered region of the system's shared memory. */
export interface SystemRegionStatus extends Required<SystemRegion> {
  readonly name: string;
}

/** A registered region of CUDA shared memory. */
export interface CudaRegionStatus extends Omit<CudaRegion, "rawHandle"> {
  readonly name: string;
}

/**
 * Shared memory: a client on the server's machine names the place of its tensors instead of sending them. The empty
 * region name means all regions.
 */
export abstract class SharedMemoryCalls extends SettingsCalls {
  /** Returns the registered regions, or one of them. */
  async getSystemSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<SystemRegionStatus[]> {
    const { regions } = await this.calls.unary(systemStatus, { name: regionName }, call);
    return Object.entries(regions).map(([name, { key, offset, byteSize }]) => ({
      name,
      key: key ?? "",
      offset: Number(offset ?? 0),
      byteSize: Number(byteSize ?? 0),
    }));
  }

  /**
   * Registers a region at the server under a name.
   *
   * @example
   * ```ts
   * await client.registerSystemSharedMemory("inputs", { key: "/my_inputs", byteSize: 64 });
   * ```
   */
  async registerSystemSharedMemory(
    regionName: string,
    { key, byteSize, offset = 0 }: SystemRegion,
    call: CallOptions = {},
  ): Promise<void> {
    await this.calls.unary(systemRegister, { name: regionName, key, byteSize, offset }, call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterSystemSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.calls.unary(systemUnregister, { name: regionName }, call);
  }

  /** Returns the registered regions, or one of them. */
  async getCudaSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<CudaRegionStatus[]> {
    const { regions } = await this.calls.unary(cudaStatus, { name: regionName }, call);
    return Object.entries(regions).map(([name, { deviceId, byteSize }]) => ({
      name,
      deviceId: Number(deviceId ?? 0),
      byteSize: Number(byteSize ?? 0),
    }));
  }

  /** Registers a region at the server under a name. */
  async registerCudaSharedMemory(
    regionName: string,
    { rawHandle, deviceId, byteSize }: CudaRegion,
    call: CallOptions = {},
  ): Promise<void> {
    const handle = typeof rawHandle === "string" ? Buffer.from(rawHandle, "base64") : rawHandle;
    await this.calls.unary(cudaRegister, { name: regionName, rawHandle: handle, deviceId, byteSize }, call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterCudaSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.calls.unary(cudaUnregister, { name: regionName }, call);
  }
}
