/** Share of late answers that waiting for more requests may cost. */
const LATE_FROM_WAITING = 0.002;
const PATIENCE_STEP = 0.1;
/** Share of late answers above which fewer requests are admitted. */
const LATE_FROM_ADMITTING = 0.01;
const CAUTION_STEP = 0.01;

/** Feedback from late answers: how far expectations held, and the settings that follow from it. */
export interface Punctuality {
  /** Share of the possible wait that is used. Below 0 it has to recover first. */
  readonly patience: number;
  /** Caution before a request is admitted, from 0 to 1. */
  readonly caution: number;
}

/** Initial state, before any batch has run. */
export const UNTRIED: Punctuality = { patience: 1, caution: 0 };

/**
 * Updates the state after a batch with these numbers of late and timely answers. A late answer is a step, a timely one
 * a small step back. So both values settle where the share of late answers is the allowed one.
 */
export function punctualityAfterBatch(
  { patience, caution }: Punctuality,
  late: number,
  inTime: number,
): Punctuality {
  return {
    patience: within(-1, patience + PATIENCE_STEP * (LATE_FROM_WAITING * inTime - late)),
    caution: within(0, caution + CAUTION_STEP * (late - LATE_FROM_ADMITTING * inTime)),
  };
}

/** Updates the state after a refusal: machine time is scarce, so no instance should be idle. */
export function afterRefusal({ patience, caution }: Punctuality): Punctuality {
  return { patience: Math.min(patience, Math.max(0, patience - PATIENCE_STEP)), caution };
}

function within(least: number, value: number): number {
  return Math.min(1, Math.max(least, value));
}
