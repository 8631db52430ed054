import type { ReadHeaders } from "@tritonjs/core/internal/server";
import { errorFor } from "@tritonjs/protocol";

/** Header with the milliseconds that a client waits for the answer. */
const TIMEOUT_HEADER = "tritonjs-timeout-ms";
/** gRPC's header of the same meaning, which HTTP clients may send too: `150m`, `2S`. */
const GRPC_TIMEOUT_HEADER = "grpc-timeout";

/** Limit for a gRPC header of 0, which means that the time is over. A limit of 0 ms would mean that there is none. */
const LEAST_LIMIT_MS = 1e-6;

const MILLISECONDS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Header with the name of the caller. */
const CALLER_HEADER = "tritonjs-caller";
/** Longest name that is kept, in characters. */
const LONGEST_NAME = 128;

/**
 * Reads from the headers of a client how long it waits for the answer, and who it is, for a model whose scheduler looks at
 * that. Other models are not told: Triton ignores these headers. A traced request has them anyway, so that its recording
 * can be replayed with another scheduler.
 *
 * @param reads headers that the scheduler of the model looks at
 * @param headers the headers, as the transport has them
 * @param header returns the first value of a header
 * @throws TritonError INVALID_ARG for a value that is not a time, if the scheduler looks at it
 */
export function readCallerHeaders<H>(
  request: { caller?: string; clientLimitMs?: number; readonly trace?: unknown },
  reads: ReadHeaders | undefined,
  headers: H,
  header: (headers: H, name: string) => string | undefined,
): void {
  const isTraced = request.trace !== undefined;
  const by = reads?.caller ?? (isTraced ? "caller" : undefined);
  if (by !== undefined) {
    const name = header(headers, by === "caller" ? CALLER_HEADER : by);
    if (name !== undefined) request.caller = name.slice(0, LONGEST_NAME);
  }
  if (reads?.limit === true) request.clientLimitMs = limitOf(headers, header);
  else if (isTraced) request.clientLimitMs = limitOrNone(headers, header);
}

/** The shortest limit that the headers have, in milliseconds; 0 for none. */
function limitOf<H>(headers: H, header: (headers: H, name: string) => string | undefined): number {
  const own = header(headers, TIMEOUT_HEADER);
  const grpc = header(headers, GRPC_TIMEOUT_HEADER);
  if (own === undefined && grpc === undefined) return 0;
  return Math.min(
    own === undefined ? Number.POSITIVE_INFINITY : millisecondsOf(own),
    grpc === undefined ? Number.POSITIVE_INFINITY : grpcLimit(grpc),
  );
}

/** The same for a model that does not look at limits: 0 for a value that is not a time. */
function limitOrNone<H>(headers: H, header: (headers: H, name: string) => string | undefined): number {
  try {
    return limitOf(headers, header);
  } catch {
    return 0;
  }
}

function millisecondsOf(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isFinite(value) && value > 0) return value;
  throw errorFor(
    "INVALID_OPTION",
    `header '${TIMEOUT_HEADER}': expected a number of milliseconds above 0, got '${text}'`,
  );
}

function grpcLimit(text: string): number {
  const limitMs = grpcTimeoutMs(text);
  if (limitMs !== undefined) return Math.max(LEAST_LIMIT_MS, limitMs);
  throw errorFor(
    "INVALID_OPTION",
    `header '${GRPC_TIMEOUT_HEADER}': expected up to 8 digits and a unit of H, M, S, m, u or n, got '${text}'`,
  );
}

/** Milliseconds of a value of gRPC's header `grpc-timeout`, such as `150m`; undefined for any other text. */
export function grpcTimeoutMs(text: string): number | undefined {
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits) * MILLISECONDS[unit!]!;
}
