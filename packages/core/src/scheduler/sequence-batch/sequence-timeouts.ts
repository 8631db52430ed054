import { TritonError } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { DeadlineQueue } from "../../clock/deadline-queue.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { Sequence } from "./sequence.js";

/** How long sequences may do without. */
export interface SequenceLimits {
  /** Longest time in a slot without a request. */
  readonly maxIdleMs: number;
  /** Sequences that are at work for as long as their one request is. */
  readonly iterative: boolean;
}

/** The time that sequences have: in a slot without a request, and in the backlog with one. */
export class SequenceTimeouts {
  /** @param over called for a sequence whose time is over; what waits of it has failed */
  constructor(
    private readonly limits: SequenceLimits,
    private readonly clock: Clock,
    private readonly deadlines: DeadlineQueue,
    private readonly over: (sequence: Sequence, reason: "idle" | "cancelled") => void,
  ) {}

  /** A request in the backlog that may not wait for longer takes its whole sequence with it. */
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

  /** A sequence has got a slot. */
  assigned(sequence: Sequence): void {
    sequence.expiry?.cancel();
    sequence.lastUsed = this.clock.now();
    this.#watchIdle(sequence);
  }

  /** One deadline for each open sequence in a slot, moved when it passes and not with each request. */
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
