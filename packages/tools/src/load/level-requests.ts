import type { LoadLevel } from "./load-level.js";

/** Requests of a level that ends by itself; undefined for the others. */
export function requestsOfLevel(level: LoadLevel): number | undefined {
  switch (level.mode) {
    case "fixed_schedule":
      return level.timestampsMs.length;
    case "periodic_concurrency":
      return level.end;
    case "session_concurrency":
      return level.sessions.reduce((sum, { turns }) => sum + turns.length, 0);
    default:
      return undefined;
  }
}

/** Whether the requests of a level depend on each other, so that one thread sends all of them. */
export function needsOneThread({ mode }: LoadLevel): boolean {
  return mode === "periodic_concurrency" || mode === "session_concurrency";
}
