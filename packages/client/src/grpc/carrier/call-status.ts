import type { ServiceError } from "@grpc/grpc-js";
import { RETRY_PUSHBACK } from "@tritonjs/grpc-messages";

/** How a call ended. */
export interface ReceivedStatus {
  readonly code: number;
  readonly details: string;
  /** Milliseconds after which the call may be retried; `Infinity` for never. */
  readonly retryAfterMs?: number | undefined;
}

/**
 * Reads how a call ended, with the server's hint about a retry. By gRPC's rule, a hint that is not a number of
 * milliseconds means never.
 */
export function callStatus({ code, details, metadata }: ServiceError): ReceivedStatus {
  const pushback: string | Buffer | undefined = metadata?.get(RETRY_PUSHBACK)[0];
  if (pushback === undefined) return { code, details };
  const text = String(pushback);
  return { code, details, retryAfterMs: /^\d+$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY };
}
