import { cpus, freemem, totalmem } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import type { Gpus } from "../config/gpus.js";
import { residentBytes } from "../system/start-process.js";
import { type CollectedFamily, counter, gauge } from "./metric-families.js";

/** Metrics of the machine. */
export class MachineMetrics {
  #before: ProcessorTimes | undefined;

  constructor(private readonly gpus?: Gpus) {}

  /** The metric families. The utilization is 0 on the first scrape. */
  families(): CollectedFamily[] {
    return [
      gauge(
        "nv_pinned_memory_pool_total_bytes",
        "Pinned memory pool total memory size, in bytes",
        () => this.gpus?.pinnedMemory?.total ?? 0,
      ),
      gauge(
        "nv_pinned_memory_pool_used_bytes",
        "Pinned memory pool used memory size, in bytes",
        () => this.gpus?.pinnedMemory?.used ?? 0,
      ),
      gauge("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", () => this.#utilization()),
      gauge("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", totalmem),
      gauge("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", () => totalmem() - freemem()),
    ];
  }

  #utilization(): number {
    const now = processorTimes();
    const before = this.#before;
    this.#before = now;
    if (before === undefined || now.total <= before.total) return 0;
    return (now.busy - before.busy) / (now.total - before.total);
  }
}

interface ProcessorTimes {
  readonly busy: number;
  readonly total: number;
}

/** Milliseconds of all processors together, since the machine was started. */
function processorTimes(): ProcessorTimes {
  let busy = 0;
  let idle = 0;
  for (const { times } of cpus()) {
    busy += times.user + times.nice + times.sys + times.irq;
    idle += times.idle;
  }
  return { busy, total: busy + idle };
}

type DelayHistogram = ReturnType<typeof monitorEventLoopDelay>;

const SECONDS_PER_NS = 1e-9;

/** Milliseconds between two samples of the event loop's delay. Node.js counts them as a part of each sample. */
const RESOLUTION_MS = 20;

const QUANTILES = [
  ["p50", 50],
  ["p90", 90],
  ["p99", 99],
] as const;

/**
 * Metrics of this process, with the names that `prom-client` gives them: dashboards of Node.js know these. The delay of
 * the event loop is measured from the first scrape on. Everything else is read on a scrape.
 */
export class ProcessMetrics {
  #delay: DelayHistogram | undefined;
  #before: ReturnType<typeof performance.eventLoopUtilization> | undefined;

  families(): CollectedFamily[] {
    return [
      counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", () => {
        const { user, system } = process.cpuUsage();
        return (user + system) / 1e6;
      }),
      gauge("process_resident_memory_bytes", "Resident memory size in bytes.", residentBytes),
      gauge(
        "process_start_time_seconds",
        "Start time of the process since unix epoch in seconds.",
        () => performance.timeOrigin / 1000,
      ),
      gauge(
        "nodejs_heap_size_total_bytes",
        "Process heap size from Node.js in bytes.",
        () => getHeapStatistics().total_heap_size,
      ),
      gauge(
        "nodejs_heap_size_used_bytes",
        "Process heap size used from Node.js in bytes.",
        () => getHeapStatistics().used_heap_size,
      ),
      gauge(
        "nodejs_external_memory_bytes",
        "Node.js external memory size in bytes.",
        () => getHeapStatistics().external_memory,
      ),
      gauge(
        "nodejs_eventloop_utilization",
        "Share of time in which the event loop was busy since the last scrape [0.0 - 1.0]",
        () => this.#utilization(),
      ),
      ...this.#delayFamilies(),
    ];
  }

  close(): void {
    this.#delay?.disable();
    this.#delay = undefined;
  }

  #utilization(): number {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#before);
    this.#before = now;
    return utilization;
  }

  /** The families are collected in their order, and the last one begins the next period. */
  #delayFamilies(): CollectedFamily[] {
    const seconds = (name: string, help: string, nanoseconds: (delay: DelayHistogram) => number) =>
      gauge(name, help, () => {
        const delay = this.#measured();
        return delay.count === 0
          ? 0
          : Math.max(0, nanoseconds(delay) * SECONDS_PER_NS - RESOLUTION_MS / 1000);
      });
    return [
      seconds(
        "nodejs_eventloop_lag_mean_seconds",
        "The mean of the recorded event loop delays.",
        (delay) => delay.mean,
      ),
      ...QUANTILES.map(([name, percentile]) =>
        seconds(
          `nodejs_eventloop_lag_${name}_seconds`,
          `The ${percentile}th percentile of the recorded event loop delays.`,
          (delay) => delay.percentile(percentile),
        ),
      ),
      seconds("nodejs_eventloop_lag_max_seconds", "The maximum recorded event loop delay.", (delay) => {
        const { max } = delay;
        delay.reset();
        return max;
      }),
    ];
  }

  #measured(): DelayHistogram {
    if (this.#delay === undefined) {
      this.#delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
      this.#delay.enable();
    }
    return this.#delay;
  }
}
