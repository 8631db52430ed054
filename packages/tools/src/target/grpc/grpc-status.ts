const NAMES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

/** Text of the failure that headers or trailers tell, as Triton's Python client writes it. Undefined for success. */
export function grpcFailure(headers: ReadonlyMap<string, string>): string | undefined {
  const status = headers.get("grpc-status");
  if (status === "0") return undefined;
  if (status === undefined)
    return `expected a gRPC status, got HTTP status ${headers.get(":status") ?? "none"}`;
  const name = NAMES[Number(status)] ?? status;
  return `[StatusCode.${name}] ${decoded(headers.get("grpc-message") ?? "")}`;
}

function decoded(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}
