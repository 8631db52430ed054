import { LONGEST_TIMEOUT_MS } from "@tritonjs/protocol";
import { STATUS } from "../../status-from-code.js";
import { RefusedCall } from "../refused-call.js";

const MILLISECONDS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/**
 * Milliseconds in the header `grpc-timeout`; undefined for no limit, and for a limit beyond the longest timer.
 *
 * @throws RefusedCall INTERNAL for an invalid header.
 */
export function timeoutOf(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(header) ?? [];
  if (digits === undefined) throw new RefusedCall(STATUS.INTERNAL, `Invalid grpc-timeout value "${header}"`);
  const milliseconds = Number(digits) * MILLISECONDS[unit!]!;
  return milliseconds > LONGEST_TIMEOUT_MS ? undefined : milliseconds;
}
