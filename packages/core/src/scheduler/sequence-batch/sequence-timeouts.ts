import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { DeadlineQueue } from "../../clock/deadline-queue.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { Sequence } from "./sequence.js";

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

  /** Keeps one deadline for each open sequence in a slot. It is moved when it passes, not with each request. */
  #watchIdle(sequence: Sequence): void {
    if (!sequence.open) return;
    const { maxIdleMs, iterative } = this.limits;
    sequence.idleDeadline = this.deadlines.add(sequence.lastUsed + maxIdleMs, () => {
      const now = this.clock.now();
      if (iterative && sequence.running) sequence.lastUsed = now;
      if (now - sequence.lastUsed < maxIdleMs) this.#watchIdle(sequence);
      else this.over(sequence, "idle");
    });
  }
}
