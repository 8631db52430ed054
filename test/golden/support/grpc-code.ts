import type { ErrorCode } from "@tritonjs/core";

const names: Partial<Record<ErrorCode, string>> = {
  INVALID_ARG: "INVALID_ARGUMENT",
  UNSUPPORTED: "UNIMPLEMENTED",
};

/** gRPC's name of one of Triton's error codes. */
export function grpcCodeName(code: ErrorCode): string {
  return names[code] ?? code;
}
