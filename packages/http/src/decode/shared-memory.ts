import { TritonError } from "@tritonjs/core";

/** The error of every use of shared memory by a client while it is not allowed. */
export function sharedMemoryDisabled(): TritonError {
  return new TritonError(
    "UNSUPPORTED",
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
  );
}
