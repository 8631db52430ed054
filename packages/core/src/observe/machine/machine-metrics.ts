import { cpus, freemem, totalmem } from "node:os";
import { type CollectedFamily, gauge } from "../collected-family.js";

/**
 * Metrics of the machine: its memory, and the utilization of its processors since the last look. Node.js has no pinned
 * memory. The families of pinned memory report none, as on a Triton without GPU.
 */
export class MachineMetrics {
  #before: ProcessorTimes | undefined;

  /** The metric families. The utilization is 0 on the first scrape. */
  families(): CollectedFamily[] {
    return [
      gauge("nv_pinned_memory_pool_total_bytes", "Pinned memory pool total memory size, in bytes", () => 0),
      gauge("nv_pinned_memory_pool_used_bytes", "Pinned memory pool used memory size, in bytes", () => 0),
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
