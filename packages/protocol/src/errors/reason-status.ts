import type { ErrorReason } from "./error-reasons.js";

/** Statuses of a reason on both transports. */
export interface ReasonStatus {
  readonly http: number;
  readonly grpc: number;
}

/** Reasons with a status of their own. All others have the status of their code. */
const statuses: Partial<Record<ErrorReason, ReasonStatus>> = {
  UNAUTHENTICATED: { http: 401, grpc: 16 },
  PERMISSION_DENIED: { http: 403, grpc: 7 },
};

/** The statuses of a reason, if it has any that differ from those of its code. */
export function reasonStatus(reason: ErrorReason): ReasonStatus | undefined {
  return statuses[reason];
}
