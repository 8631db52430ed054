import type { SavedSketch } from "./drift-sketch.js";
import type { LiveRollout, RolloutEvent, RolloutReport, RolloutState } from "./rollout.js";
import type { Verdict } from "./verdict.js";

/**
 * A rollout that the program has started.
 *
 * @example
 * ```ts
 * const rollout = await updates.start("resnet", { from: 1, to: 2, share: 10 });
 * rollout.onEvent(({ type, reason }) => console.log(type, reason));
 * rollout.promote();
 * ```
 */
export interface Rollout {
  readonly model: string;
  readonly from: number;
  readonly to: number;
  readonly state: RolloutState;
  /** Percentage of the requests without a version that the new version gets. */
  readonly share: number;
  /** Changes the percentage. */
  setShare(share: number): void;
  /** Stops the time of the steps. The share stays. */
  pause(): void;
  resume(): void;
  /** Sends all requests without a version to the new version from now on, and ends the rollout. */
  promote(): void;
  /** Sends all requests without a version to the old version from now on, and ends the rollout. */
  rollBack(reason?: string): void;
  /** Forgets the rollout: requests without a version get the highest version in service, as without a rollout. */
  remove(): void;
  verdict(): Verdict;
  report(): RolloutReport;
  /** The distributions of the inputs so far, as `verdict.drift.reference` of a later rollout. */
  references(): Record<string, SavedSketch>;
  /** Calls `listener` with each event from now on. Returns a function that ends that. */
  onEvent(listener: (event: RolloutEvent) => void): () => void;
}

/** @param remove forgets the rollout */
export function handleOf(
  live: LiveRollout,
  listeners: Set<(event: RolloutEvent) => void>,
  remove: () => void,
): Rollout {
  return {
    model: live.model,
    from: live.from,
    to: live.to,
    get state() {
      return live.state;
    },
    get share() {
      return live.share;
    },
    setShare: (share) => live.setShare(share),
    pause: () => live.pause(),
    resume: () => live.resume(),
    promote: () => live.promote(),
    rollBack: (reason) => live.rollBack(reason),
    remove,
    verdict: () => live.evidence.verdict(),
    report: () => live.report(),
    references: () => live.references(),
    onEvent(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
