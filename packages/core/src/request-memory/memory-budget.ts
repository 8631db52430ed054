import { TritonError } from "@tritonjs/protocol";
import { MemoryUsage } from "./memory-usage.js";

/** Time until a refused client should retry, in milliseconds. Requests take milliseconds to seconds. */
export const RETRY_AFTER_MS = 1000;

/** Budget of bytes for all requests. Each request takes its bytes as a share ({@link RequestShare}). */
export class MemoryBudget {
  readonly limitBytes: number;
  readonly usage = new MemoryUsage();

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  get usedBytes(): number {
    return this.usage.usedBytes;
  }

  /**
   * Checks that a request with `own` bytes may take more, without taking them. A request that is alone may take as many
   * as its frontend allows. Otherwise a request larger than the budget could never be served.
   *
   * @throws TritonError UNAVAILABLE when the bytes do not fit.
   */
  check(bytes: number, own: number): void {
    const { usedBytes } = this.usage;
    if (usedBytes + bytes <= this.limitBytes || usedBytes === own) return;
    this.usage.refused("BUDGET");
    const free = Math.max(0, this.limitBytes - usedBytes);
    throw new TritonError(
      "UNAVAILABLE",
      `request refused: expected at most ${free} more bytes of request memory, got ${bytes} ` +
        `(${usedBytes} of ${this.limitBytes} are in use). Try again later, or raise requestMemory.byteSize ` +
        "(--request-memory-byte-size).",
      { reason: "REQUEST_MEMORY_EXHAUSTED", retryAfterMs: RETRY_AFTER_MS },
    );
  }

  add(bytes: number): void {
    this.usage.add(bytes);
  }
}
