import { performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { residentBytes } from "@tritonjs/core/frontend";

/** What this process used since the last look. */
export interface ProcessUsage {
  /** Processor time as a share of one core: 1.5 is one core and a half. */
  readonly cpu: number;
  /** Share of time in which the event loop was busy, from 0 to 1. */
  readonly eventLoop: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
}

/** Measures this process between two looks. */
export class ProcessMeter {
  #cpu = process.cpuUsage();
  #loop = performance.eventLoopUtilization();
  #at = performance.now();

  look(): ProcessUsage {
    const now = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const eventLoop = performance.eventLoopUtilization(this.#loop).utilization;
    const elapsedMs = Math.max(1, now - this.#at);
    this.#cpu = process.cpuUsage();
    this.#loop = performance.eventLoopUtilization();
    this.#at = now;
    return {
      cpu: (user + system) / 1000 / elapsedMs,
      eventLoop,
      residentBytes: residentBytes(),
      heapBytes: getHeapStatistics().used_heap_size,
    };
  }
}
