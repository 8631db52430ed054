import type { InferenceService } from "@tritonjs/core/frontend";
import { type Method, rpc } from "../transport/method.js";

const protocol = "shared-memory";

/** Regions of system and CUDA shared memory that clients register. */
export function sharedMemoryMethods({ sharedMemory }: InferenceService): Method[] {
  return [
    rpc("SystemSharedMemoryStatus", protocol, ({ name }) => ({
      regions: byName(sharedMemory.systemStatus(name)),
    })),
    rpc("SystemSharedMemoryRegister", protocol, async ({ name, key, offset, byteSize }) => {
      await sharedMemory.registerSystem(name, { key, offset, byteSize });
      return {};
    }),
    rpc("SystemSharedMemoryUnregister", protocol, ({ name }) => {
      sharedMemory.unregisterSystem(name);
      return {};
    }),
    rpc("CudaSharedMemoryStatus", protocol, ({ name }) => ({
      regions: byName(sharedMemory.cudaStatus(name)),
    })),
    rpc("CudaSharedMemoryRegister", protocol, ({ name }) => sharedMemory.registerCuda(name)),
    rpc("CudaSharedMemoryUnregister", protocol, ({ name }) => {
      sharedMemory.unregisterCuda(name);
      return {};
    }),
  ];
}

function byName<R extends { readonly name: string }>(regions: readonly R[]): Record<string, R> {
  return Object.fromEntries(regions.map((region) => [region.name, region]));
}
