import type { ErrorCode } from "@tritonjs/core";
import type { Way } from "./clients/client.js";
import { STREAM_ERROR } from "./clients/grpc-stream.js";

/** The transport status of each of our codes, from Triton's own tables. */
const statuses: Record<ErrorCode, readonly [http: number, grpc: string]> = {
  UNKNOWN: [400, "UNKNOWN"],
  INTERNAL: [500, "INTERNAL"],
  NOT_FOUND: [404, "NOT_FOUND"],
  INVALID_ARG: [400, "INVALID_ARGUMENT"],
  UNAVAILABLE: [503, "UNAVAILABLE"],
  UNSUPPORTED: [501, "UNIMPLEMENTED"],
  ALREADY_EXISTS: [400, "ALREADY_EXISTS"],
  CANCELLED: [400, "CANCELLED"],
};

/** All codes. */
export const ERROR_CODES = Object.keys(statuses) as ErrorCode[];

/** The status that this client sees for a code. */
export function statusFor(way: Way, code: ErrorCode): string | number {
  const [http, grpc] = statuses[code];
  if (way === "in process") return code;
  if (way.startsWith("gRPC stream")) return STREAM_ERROR;
  return way.startsWith("HTTP") ? http : grpc;
}
