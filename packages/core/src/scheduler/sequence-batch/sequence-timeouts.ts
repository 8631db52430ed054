import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { DeadlineQueue } from "../../clock/deadline-queue.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { Sequence } from "./sequence.js";

/** Lateness of a deadline from which on the process must have stood still: its machine or its event loop was blocked. */
const STOOD_STILL_MS = 100;

/** Time to read the requests that came while the process stood still, before a sequence counts as idle. */
const CATCH_UP_MS = 500;

/** Time limits of sequences. */
export interface SequenceLimits {
  /** Longest time in a slot without a request, in milliseconds. */
  readonly maxIdleMs: number;
  /** True for iterative sequences, which are busy as long as their one request is. */
  readonly iterative: boolean;
}

/** Enforces the time limits of sequences: in a slot without a request, and in the backlog with one. */
export class SequenceTimeouts {
  /** @param over called for a sequence whose time is over, after its waiting requests have failed */
  constructor(
    private readonly limits: SequenceLimits,
    private readonly clock: Clock,
    private readonly deadlines: DeadlineQueue,
    private readonly over: (sequence: Sequence, reason: "idle" | "cancelled") => void,
  ) {}

  /** Limits the wait of a request in the backlog. When its time is over, the whole sequence ends. */
  limitWait(sequence: Sequence, { queueTimeoutMicroseconds }: PendingRequest, now: number): void {
    const at = now + queueTimeoutMicroseconds / 1000;
    if (queueTimeoutMicroseconds === 0 || at >= sequence.expiresAt) return;
    sequence.expiry?.cancel();
    sequence.expiresAt = at;
    sequence.expiry = this.deadlines.add(at, () => {
      sequence.failAll(
        new TritonError("UNAVAILABLE", "timeout of the corresponding sequence has been expired", {
          reason: "SEQUENCE_EXPIRED",
        }),
      );
      this.over(sequence, "cancelled");
    });
  }

  /** Starts the idle limit of a sequence that has been assigned a slot. */
  assigned(sequence: Sequence): void {
    sequence.expiry?.cancel();
    sequence.lastUsed = this.clock.now();
    this.#watchIdle(sequence);
  }

  /**
   * Keeps one deadline for each open sequence in a slot. It is moved when it passes, not with each request.
   *
   * @param catchesUpAt end of the time to read waiting requests, after a deadline that came late
   */
  #watchIdle(sequence: Sequence, catchesUpAt?: number): void {
    if (!sequence.open) return;
    const { maxIdleMs, iterative } = this.limits;
    const at = catchesUpAt ?? sequence.lastUsed + maxIdleMs;
    sequence.idleDeadline = this.deadlines.add(at, () => {
      const now = this.clock.now();
      if (iterative && sequence.running) sequence.lastUsed = now;
      if (now - sequence.lastUsed < maxIdleMs) this.#watchIdle(sequence);
      else if (catchesUpAt === undefined && now - at > STOOD_STILL_MS)
        this.#watchIdle(sequence, now + CATCH_UP_MS);
      else this.over(sequence, "idle");
    });
  }
}
