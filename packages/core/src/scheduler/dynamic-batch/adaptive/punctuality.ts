/** Share of late answers that waiting for others may cost. */
const LATE_FROM_WAITING = 0.002;
const PATIENCE_STEP = 0.1;
/** Share of late answers from which on fewer requests are let in. */
const LATE_FROM_ADMITTING = 0.01;
const CAUTION_STEP = 0.01;

/** How far expectations have held, and what is made of that. */
export interface Punctuality {
  /** Share of the possible wait for others that is used. Below 0 it has to recover first. */
  readonly patience: number;
  /** What is reckoned with before a request is let in, from 0 to 1. */
  readonly caution: number;
}

/** Nothing has happened yet. */
export const UNTRIED: Punctuality = { patience: 1, caution: 0 };

/**
 * After a batch with so many late answers, and so many in time. Each late one is a step, each other one a small step
 * back, so that both rest where the share of late answers is the one that is allowed.
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

/** After a request that was refused: machine time is scarce, nothing should stand idle. */
export function afterRefusal({ patience, caution }: Punctuality): Punctuality {
  return { patience: Math.min(patience, Math.max(0, patience - PATIENCE_STEP)), caution };
}

function within(least: number, value: number): number {
  return Math.min(1, Math.max(least, value));
}
