import type { InferenceService } from "@tritonjs/core/frontend";
import { inference, inferencePath } from "@tritonjs/protocol/grpc";
import { type Method, unary } from "../transport/method.js";

const protocol = "shared-memory";

/** Regions of system and CUDA shared memory that clients register. */
export function sharedMemoryMethods({ sharedMemory }: InferenceService): Method[] {
  return [
    unary(
      {
        path: inferencePath("SystemSharedMemoryStatus"),
        protocol,
        request: inference.SystemSharedMemoryStatusRequest,
        response: inference.SystemSharedMemoryStatusResponse,
      },
      ({ name }) => ({ regions: byName(sharedMemory.systemStatus(name)) }),
    ),
    unary(
      {
        path: inferencePath("SystemSharedMemoryRegister"),
        protocol,
        request: inference.SystemSharedMemoryRegisterRequest,
        response: inference.SystemSharedMemoryRegisterResponse,
      },
      async ({ name, key, offset, byteSize }) => {
        await sharedMemory.registerSystem(name, { key, offset, byteSize });
        return {};
      },
    ),
    unary(
      {
        path: inferencePath("SystemSharedMemoryUnregister"),
        protocol,
        request: inference.SystemSharedMemoryUnregisterRequest,
        response: inference.SystemSharedMemoryUnregisterResponse,
      },
      ({ name }) => {
        sharedMemory.unregisterSystem(name);
        return {};
      },
    ),
    unary(
      {
        path: inferencePath("CudaSharedMemoryStatus"),
        protocol,
        request: inference.CudaSharedMemoryStatusRequest,
        response: inference.CudaSharedMemoryStatusResponse,
      },
      ({ name }) => ({ regions: byName(sharedMemory.cudaStatus(name)) }),
    ),
    unary(
      {
        path: inferencePath("CudaSharedMemoryRegister"),
        protocol,
        request: inference.CudaSharedMemoryRegisterRequest,
        response: inference.CudaSharedMemoryRegisterResponse,
      },
      ({ name }) => sharedMemory.registerCuda(name),
    ),
    unary(
      {
        path: inferencePath("CudaSharedMemoryUnregister"),
        protocol,
        request: inference.CudaSharedMemoryUnregisterRequest,
        response: inference.CudaSharedMemoryUnregisterResponse,
      },
      ({ name }) => {
        sharedMemory.unregisterCuda(name);
        return {};
      },
    ),
  ];
}

function byName<R extends { readonly name: string }>(regions: readonly R[]): Record<string, R> {
  return Object.fromEntries(regions.map((region) => [region.name, region]));
}
