import { ConcurrencyGate, TritonError } from "@tritonjs/protocol";

import { type CompressionFormat, type InflateLimits, inflate, UnpackFault } from "./inflate.js";
import { MemoryBudget, RETRY_AFTER_MS } from "./memory-budget.js";
import type { MemoryRefusal } from "./memory-usage.js";
import { type RequestMemoryOptions, resolveRequestMemory } from "./request-memory-options.js";
import { RequestShare } from "./request-share.js";

/**
 * Number of refused requests by reason: no memory left, too many waiting to be unpacked, too large for their compressed
 * size.
 */
export type MemoryRefusals = Readonly<Record<MemoryRefusal, number>>;

/**
 * The memory of all requests that a server receives, over all transports:
 *
 *     bytes come -----> share of the budget --- compressed ---> turn ---> unpacked, in the same share
 *        \                                                       /
 *         \-- do not fit --> UNAVAILABLE <-- too many wait -----/
 */
export class RequestMemory {
  /** The options with all defaults filled in. */
  readonly options: Required<RequestMemoryOptions>;
  readonly #budget: MemoryBudget;
  readonly #turns: ConcurrencyGate;
  readonly #maxRatio: number;

  /** @throws TritonError INVALID_ARG for a number that an option cannot have. */
  constructor(options?: RequestMemoryOptions) {
    const resolved = resolveRequestMemory(options);
    this.options = resolved;
    const { maxDecompressions, maxWaitingDecompressions, maxCompressionRatio } = resolved;
    this.#budget = new MemoryBudget(resolved.byteSize);
    this.#maxRatio = maxCompressionRatio === 0 ? Number.POSITIVE_INFINITY : maxCompressionRatio;
    this.#turns = new ConcurrencyGate(maxDecompressions, maxWaitingDecompressions, (limits) =>
      this.#queueFull(limits),
    );
  }

  /** Bytes that requests hold now. */
  get usedBytes(): number {
    return this.#budget.usedBytes;
  }

  get limitBytes(): number {
    return this.#budget.limitBytes;
  }

  /** Requests that were refused since the start. */
  get refusals(): MemoryRefusals {
    const { usage } = this.#budget;
    return {
      BUDGET: usage.refusals("BUDGET"),
      QUEUE: usage.refusals("QUEUE"),
      RATIO: usage.refusals("RATIO"),
    };
  }

  /** Shares the budget with other threads, whose requests count in other rows. */
  join(rows: Float64Array, row: number): void {
    this.#budget.usage.join(rows, row);
  }

  /** Creates the empty share of one request. The caller has to release it. */
  share(): RequestShare {
    return new RequestShare(this.#budget);
  }

  /**
   * Unpacks a compressed request in its turn. The share has the compressed bytes and exchanges them for the unpacked
   * ones.
   *
   * @throws UnpackFault for an input that is too large or broken, TritonError UNAVAILABLE when too many requests wait
   * or the budget is exhausted, CANCELLED when the signal aborts.
   */
  async unpack(
    input: Uint8Array,
    compression: CompressionFormat,
    limits: Omit<InflateLimits, "maxRatio">,
  ): Promise<Buffer> {
    const { share, signal, maxBytes } = limits;
    const task = () => inflate(input, compression, { share, signal, maxBytes, maxRatio: this.#maxRatio });
    try {
      const output = await this.#turns.run(task, signal);
      share.give(input.byteLength);
      return output;
    } catch (error) {
      if (error instanceof UnpackFault && error.kind === "RATIO") this.#budget.usage.refused("RATIO");
      throw error;
    }
  }

  #queueFull(limits: string): TritonError {
    this.#budget.usage.refused("QUEUE");
    return new TritonError(
      "UNAVAILABLE",
      `request refused: too many compressed requests wait to be decompressed (${limits}). Try again later, or raise ` +
        "requestMemory.maxWaitingDecompressions (--max-waiting-decompressions).",
      { reason: "DECOMPRESSION_QUEUE_FULL", retryAfterMs: RETRY_AFTER_MS },
    );
  }
}
