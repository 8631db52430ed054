/**
 * The closed set of error codes, with the names of Triton's C API. Each transport maps them to its own status
 * (`INVALID_ARG` is HTTP 400 and gRPC `INVALID_ARGUMENT`).
 */
export type ErrorCode =
  | "UNKNOWN"
  | "INTERNAL"
  | "NOT_FOUND"
  | "INVALID_ARG"
  | "UNAVAILABLE"
  | "UNSUPPORTED"
  | "ALREADY_EXISTS"
  | "CANCELLED";
