import type { CudaRegion, SystemRegion } from "../../options/shared-memory-regions.js";
import type { CallOptions } from "../client-options.js";
import { toBase64 } from "../json/base64.js";
import { sharedMemoryPath } from "../paths.js";
import type { CudaRegionAnswer, SystemRegionAnswer } from "./server-answers.js";
import { SettingsCalls } from "./settings-calls.js";

/**
 * Shared memory: a client on the server's machine names the place of its tensors instead of sending them. The empty
 * region name means all regions.
 */
export abstract class SharedMemoryCalls extends SettingsCalls {
  /** Returns the registered regions, or one of them. */
  getSystemSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<SystemRegionAnswer[]> {
    return this.get(sharedMemoryPath("system", regionName, "status"), call);
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
    const region = { key, offset, byte_size: byteSize };
    await this.post(sharedMemoryPath("system", regionName, "register"), region, "changes", call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterSystemSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.post(sharedMemoryPath("system", regionName, "unregister"), {}, "changes", call);
  }

  /** Returns the registered regions, or one of them. */
  getCudaSharedMemoryStatus(regionName = "", call: CallOptions = {}): Promise<CudaRegionAnswer[]> {
    return this.get(sharedMemoryPath("cuda", regionName, "status"), call);
  }

  /** Registers a region at the server under a name. */
  async registerCudaSharedMemory(
    regionName: string,
    { rawHandle, deviceId, byteSize }: CudaRegion,
    call: CallOptions = {},
  ): Promise<void> {
    const b64 = typeof rawHandle === "string" ? rawHandle : toBase64(rawHandle);
    const region = { raw_handle: { b64 }, device_id: deviceId, byte_size: byteSize };
    await this.post(sharedMemoryPath("cuda", regionName, "register"), region, "changes", call);
  }

  /** Unregisters a region, or all of them. */
  async unregisterCudaSharedMemory(regionName = "", call: CallOptions = {}): Promise<void> {
    await this.post(sharedMemoryPath("cuda", regionName, "unregister"), {}, "changes", call);
  }
}
