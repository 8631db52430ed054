import { TritonError } from "@tritonjs/core";
import { inference } from "#proto";
import { type Method, unary } from "../transport/method.js";
import { inferencePath } from "./paths.js";

const protocol = "shared-memory";

/** System and CUDA shared memory: no region is registered, and none can be. */
export function sharedMemoryMethods(): Method[] {
  return [
    unary(
      {
        path: inferencePath("SystemSharedMemoryStatus"),
        protocol,
        request: inference.SystemSharedMemoryStatusRequest,
        response: inference.SystemSharedMemoryStatusResponse,
      },
      ({ name }) => noRegions("system", name),
    ),
    unary(
      {
        path: inferencePath("SystemSharedMemoryRegister"),
        protocol,
        request: inference.SystemSharedMemoryRegisterRequest,
        response: inference.SystemSharedMemoryRegisterResponse,
      },
      refuse,
    ),
    unary(
      {
        path: inferencePath("SystemSharedMemoryUnregister"),
        protocol,
        request: inference.SystemSharedMemoryUnregisterRequest,
        response: inference.SystemSharedMemoryUnregisterResponse,
      },
      refuse,
    ),
    unary(
      {
        path: inferencePath("CudaSharedMemoryStatus"),
        protocol,
        request: inference.CudaSharedMemoryStatusRequest,
        response: inference.CudaSharedMemoryStatusResponse,
      },
      ({ name }) => noRegions("cuda", name),
    ),
    unary(
      {
        path: inferencePath("CudaSharedMemoryRegister"),
        protocol,
        request: inference.CudaSharedMemoryRegisterRequest,
        response: inference.CudaSharedMemoryRegisterResponse,
      },
      refuse,
    ),
    unary(
      {
        path: inferencePath("CudaSharedMemoryUnregister"),
        protocol,
        request: inference.CudaSharedMemoryUnregisterRequest,
        response: inference.CudaSharedMemoryUnregisterResponse,
      },
      refuse,
    ),
  ];
}

function noRegions(kind: string, name: string): { regions: Record<string, never> } {
  if (name === "") return { regions: {} };
  throw new TritonError("NOT_FOUND", `Unable to find ${kind} shared memory region: '${name}'`);
}

function refuse(): never {
  throw new TritonError(
    "UNSUPPORTED",
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
  );
}
