import { Random } from "../data/random.js";
import type {
  FixedScheduleLevel,
  RequestIntervalsLevel,
  RequestRateLevel,
  RequestRateRampLevel,
} from "./load-level.js";

/** A level that says when each request is sent. */
export type ScheduledLevel =
  | RequestRateLevel
  | RequestIntervalsLevel
  | FixedScheduleLevel
  | RequestRateRampLevel;

/** The times of requests one after the other, in milliseconds from the start of the level; undefined after the last. */
export type SendTimes = () => number | undefined;

/**
 * The times of all requests of a level. Every thread computes all of them and sends its share, so the schedule does not
 * depend on the number of threads.
 *
 * @param seed of exponential gaps: the same seed gives the same times
 */
export function sendTimes(level: ScheduledLevel, seed: number): SendTimes {
  switch (level.mode) {
    case "request_rate": {
      const arrivals = arrivalsOf(level.distribution, seed);
      const gapMs = 1000 / level.value;
      return () => arrivals() * gapMs;
    }
    case "request_rate_ramp": {
      const arrivals = arrivalsOf(level.distribution, seed);
      return () => rampTime(level, arrivals());
    }
    case "request_intervals": {
      const { gapsMicroseconds } = level;
      let at = 0;
      let next = 0;
      return () => {
        at += gapsMicroseconds[next]! / 1000;
        next = (next + 1) % gapsMicroseconds.length;
        return at;
      };
    }
    case "fixed_schedule": {
      let next = 0;
      return () => level.timestampsMs[next++];
    }
  }
}

/** Arrivals of rate 1. Equal gaps begin with a request; exponential ones with a gap. */
function arrivalsOf(distribution: "constant" | "poisson", seed: number): () => number {
  let at = 0;
  if (distribution === "constant") return () => at++;
  const random = new Random(seed);
  return () => (at += random.exponential());
}

/**
 * When a ramp has offered `arrivals` requests: the inverse of the integral of its rate. With a rate that rises from `a`
 * by `s` a millisecond, `t` milliseconds offer `a*t + s*t²/2` requests.
 */
function rampTime({ from, to, durationMs }: RequestRateRampLevel, arrivals: number): number {
  const a = from / 1000;
  const b = to / 1000;
  // The form of the root below is undefined for a ramp that begins with a rate of 0.
  if (arrivals === 0) return 0;
  const offeredByRamp = ((a + b) / 2) * durationMs;
  if (arrivals >= offeredByRamp) return durationMs + (arrivals - offeredByRamp) / b;
  const slope = (b - a) / durationMs;
  // This form of the root is exact for a slope of 0 too.
  return (2 * arrivals) / (a + Math.sqrt(Math.max(0, a * a + 2 * slope * arrivals)));
}
