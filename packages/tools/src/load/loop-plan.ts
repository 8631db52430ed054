import type { PayloadStream } from "../data/data-set.js";
import { Random } from "../data/random.js";
import type { EndListener, LoadCarrier } from "../target/carrier.js";
import type { RemoteCarrierPlan } from "../target/carrier-plan.js";
import type { ThreadShare } from "./concurrency-target.js";
import { realLoadClock } from "./load-clock.js";
import { LoadLoop } from "./load-loop.js";
import type { KeptParts } from "./record-columns.js";
import { PlainSource, type RequestSource } from "./request-source.js";
import type { SequenceRules } from "./sequence-load.js";
import { SequenceSource } from "./sequence-source.js";

/** What the loop of one thread does. It survives structured cloning. */
export interface LoopPlan {
  readonly share: ThreadShare;
  readonly seed: number;
  readonly payloads: number;
  /** Only for sequence models. */
  readonly sequences?: {
    readonly streams: readonly PayloadStream[];
    readonly rules: SequenceRules;
    readonly live: number;
    readonly serial: boolean;
  };
  readonly timeoutMs?: number;
  readonly kept: KeptParts;
}

/** What a loop in another thread needs. */
export interface ThreadPlan extends LoopPlan {
  readonly carrier: RemoteCarrierPlan;
  /** See `agreeOnTime`. */
  readonly epochOffset: number;
}

/** Seeds of threads differ, so that their data does; the schedule has one seed for all. */
export const seedOfThread = (seed: number, { index }: ThreadShare): number => seed + 0x9e37_79b9 * index;

export function openLoop(plan: LoopPlan, openCarrier: (onEnd: EndListener) => LoadCarrier): LoadLoop {
  const { share, seed, payloads, sequences, timeoutMs, kept } = plan;
  const source: RequestSource =
    sequences === undefined
      ? new PlainSource(payloads)
      : new SequenceSource(sequences.streams, sequences.rules, new Random(seedOfThread(seed, share)));
  return new LoadLoop({
    clock: realLoadClock,
    openCarrier,
    source,
    share,
    seed,
    sequences: sequences?.live ?? 0,
    serialSequences: sequences?.serial ?? true,
    timeoutMs,
    kept,
  });
}
