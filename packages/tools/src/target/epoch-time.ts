/*
 * Milliseconds since the epoch with fractions. `performance.timeOrigin` is read from the wall clock when a thread
 * starts, so it differs between threads when the wall clock was set in between. Threads therefore agree on the offset
 * between the wall clock and the monotonic clock, which all threads of a process share.
 */

let offset = performance.timeOrigin;

/** Milliseconds since the epoch. Never goes back. */
export const epochNow = (): number => offset + performance.now();

/** Offset of this thread's times from the monotonic clock, for {@link agreeOnTime}. */
export const epochOffset = (): number => epochNow() - monotonicMs();

/** Makes the times of this thread those of the thread that gave the offset. */
export function agreeOnTime(epochOffsetMs: number): void {
  offset = epochOffsetMs + monotonicMs() - performance.now();
}

const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
