import { TritonError } from "../errors/triton-error.js";

/** Triton's Python backend keeps its own objects under keys that begin with this. */
const RESERVED_PREFIX = "triton_python_backend_shm_region_";

/**
 * Checks the key of an object that a client wants to register.
 *
 * @throws TritonError INVALID_ARG for a key of the server's own.
 */
export function checkSharedMemoryKey(region: string, key: string): void {
  const name = key.replace(/^\/+/, "");
  if (name.startsWith(RESERVED_PREFIX)) {
    throw new TritonError(
      "INVALID_ARG",
      `cannot register shared memory region '${region}' with key '${key}' as the key contains the reserved ` +
        `prefix '${RESERVED_PREFIX}'`,
      { reason: "INVALID_REGION" },
    );
  }
}
