import type { Duration } from "@tritonjs/protocol";

/** Makes a duration without events. */
export function zeroDuration(): Duration {
  return { count: 0, ns: 0 };
}

/** Adds one event. Its time is never negative, whatever the clock did. */
export function addTo(duration: Duration, milliseconds: number): void {
  duration.count++;
  duration.ns += Math.max(0, Math.round(milliseconds * 1e6));
}

/** Times of one execution, in milliseconds on the model's clock. */
export interface ExecutionTimes {
  /** When the instance took the batch. */
  start: number;
  /** When the inputs were ready for the model. */
  inputEnd: number;
  /** When the model had its outputs. */
  inferEnd: number;
  /** When the outputs were split and checked. */
  end: number;
}

/** Times of computing one answer, in milliseconds. They are the times of its whole batch. */
export interface ComputeTimes {
  readonly inputMs: number;
  readonly inferMs: number;
  readonly outputMs: number;
}
