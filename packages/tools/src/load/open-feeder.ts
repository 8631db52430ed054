import type { ThreadShare } from "./concurrency-target.js";
import { ConcurrencyFeeder, type FedLoop, type Feeder, ScheduleFeeder } from "./feeder.js";
import type { LoadClock } from "./load-clock.js";
import type { LoadLevel } from "./load-level.js";
import { PeriodicFeeder } from "./periodic-feeder.js";
import { sendTimes } from "./send-schedule.js";
import { SessionFeeder } from "./session-feeder.js";

/** What the feeders of a loop have in common. */
export interface FeederParts {
  readonly clock: LoadClock;
  readonly share: ThreadShare;
  readonly seed: number;
}

/** Makes the feeder of a level that starts at a time. */
export function openFeeder(
  loop: FedLoop,
  level: LoadLevel,
  { clock, share, seed }: FeederParts,
  startAt: number,
): Feeder {
  switch (level.mode) {
    case "concurrency":
    case "concurrency_ramp":
      return new ConcurrencyFeeder(loop, clock, level, share, startAt);
    case "periodic_concurrency":
      return new PeriodicFeeder(loop, clock, level);
    case "session_concurrency":
      return new SessionFeeder(loop, clock, level);
    default: {
      const endsItself = level.mode === "fixed_schedule";
      return new ScheduleFeeder(loop, clock, sendTimes(level, seed), share, startAt, endsItself);
    }
  }
}
