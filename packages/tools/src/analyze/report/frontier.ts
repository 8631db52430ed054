import type { LevelRun } from "../figures.js";
import { totalsOf } from "../outcome.js";

/** A measurement on the plane of throughput and p99 latency. */
export interface FrontierPoint {
  readonly throughput: number;
  readonly p99Ms: number;
  readonly text: string;
}

export function pointOf(run: LevelRun, text: string): FrontierPoint {
  const { throughput, p99Ms } = totalsOf(run);
  return { throughput, p99Ms, text };
}

/** Points of which no other has both more throughput and less latency, by rising throughput. */
export function frontierOf(points: readonly FrontierPoint[]): FrontierPoint[] {
  const frontier: FrontierPoint[] = [];
  for (const point of points.toSorted((a, b) => b.throughput - a.throughput || a.p99Ms - b.p99Ms)) {
    const last = frontier.at(-1);
    if (Number.isFinite(point.p99Ms) && (last === undefined || point.p99Ms < last.p99Ms))
      frontier.push(point);
  }
  return frontier.reverse();
}
