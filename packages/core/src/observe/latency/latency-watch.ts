import type { ExecutionTimes } from "../duration.js";
import { LatencyCounts } from "./latency-counts.js";

/** Latencies of a model's answered requests, counted while somebody watches them. */
export class LatencyWatch {
  /** From arrival to answer. */
  readonly request = new LatencyCounts();
  /** From arrival to the start of the batch. */
  readonly queue = new LatencyCounts();
  /** From the start of the batch to its end. */
  readonly compute = new LatencyCounts();

  success(queueStart: number, { start, end }: ExecutionTimes): void {
    this.add(start - queueStart, end - start, end - queueStart);
  }

  add(queueMs: number, computeMs: number, requestMs: number): void {
    this.request.add(requestMs);
    this.queue.add(queueMs);
    this.compute.add(computeMs);
  }
}
