import type { Duration } from "@tritonjs/protocol";

/** No events. */
export function zeroDuration(): Duration {
  return { count: 0, ns: 0 };
}

/** One more event. Whatever the clock did, none takes less than nothing. */
export function addTo(duration: Duration, milliseconds: number): void {
  duration.count++;
  duration.ns += Math.max(0, Math.round(milliseconds * 1e6));
}

/** Times of one execution, in milliseconds on the model's clock. */
export interface ExecutionTimes {
  /** The instance took the batch. */
  start: number;
  /** The inputs were ready for the model. */
  inputEnd: number;
  /** The model had its outputs. */
  inferEnd: number;
  /** The outputs were split and checked. */
  end: number;
}

/** How long computing one answer took, in milliseconds: the times of the batch that it was part of. */
export interface ComputeTimes {
  readonly inputMs: number;
  readonly inferMs: number;
  readonly outputMs: number;
}
