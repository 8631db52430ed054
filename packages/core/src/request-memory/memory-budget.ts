import { TritonError } from "@tritonjs/protocol";

/** How long a refused client waits before it tries again. Requests take milliseconds to seconds. */
export const RETRY_AFTER_MS = 1000;

/** Bytes that requests may take together. Each takes them as a share ({@link RequestShare}). */
export class MemoryBudget {
  readonly limitBytes: number;
  /** Requests that were refused because they did not fit. */
  refusals = 0;
  #usedBytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /**
   * Checks that a request that has `own` bytes may have some more. Nothing is taken. A request that is alone may have as
   * many as its frontend allows: without that, one that is larger than the budget would never be served.
   *
   * @throws TritonError UNAVAILABLE when it may not.
   */
  check(bytes: number, own: number): void {
    if (this.#usedBytes + bytes <= this.limitBytes || this.#usedBytes === own) return;
    this.refusals++;
    const free = Math.max(0, this.limitBytes - this.#usedBytes);
    throw new TritonError(
      "UNAVAILABLE",
      `request refused: expected at most ${free} more bytes of request memory, got ${bytes} ` +
        `(${this.#usedBytes} of ${this.limitBytes} are in use). Try again later, or raise requestMemory.byteSize ` +
        "(--request-memory-byte-size).",
      { reason: "REQUEST_MEMORY_EXHAUSTED", retryAfterMs: RETRY_AFTER_MS },
    );
  }

  add(bytes: number): void {
    this.#usedBytes += bytes;
  }
}
