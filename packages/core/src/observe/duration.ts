/** A number of events and the nanoseconds they took together. */
export interface Duration {
  count: number;
  ns: number;
}

/** No events. */
export function zeroDuration(): Duration {
  return { count: 0, ns: 0 };
}

/** One more event. Whatever the clock did, none takes less than nothing. */
export function addTo(duration: Duration, milliseconds: number): void {
  duration.count++;
  duration.ns += Math.max(0, Math.round(milliseconds * 1e6));
}
