import type { TritonError } from "@tritonjs/protocol";
import type { Failure } from "./retry.js";

/** Failures of calls by their errors. A model elsewhere decides by them about its replicas. */
const failures = new WeakMap<object, Failure>();

/** Remembers how the call failed that rejects with `error`. */
export function rememberFailure(error: TritonError, failure: Failure | undefined): TritonError {
  if (failure !== undefined) failures.set(error, failure);
  return error;
}

/** How the call failed that rejected with `error`; undefined for a failure that a retry would not change. */
export function failureOfError(error: object): Failure | undefined {
  return failures.get(error);
}
