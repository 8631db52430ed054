import { TritonError } from "@tritonjs/protocol";

/** Whether a server lacks the operation that it was asked for, or does not know the model. */
export function isUnknownToServer(error: unknown): boolean {
  return TritonError.is(error) && (error.code === "NOT_FOUND" || error.code === "UNSUPPORTED");
}
