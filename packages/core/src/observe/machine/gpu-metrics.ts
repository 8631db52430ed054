import type { CollectedFamily, Series } from "../collected-family.js";
import type { Log } from "../log/log.js";
import { type GpuReading, readGpus } from "./gpu-reading.js";

/** After this many failures in a row, the driver is not asked again: as in Triton. */
const MAX_FAILURES = 3;

type Figure = Exclude<keyof GpuReading, "number" | "uuid">;

/** Triton's gauges by name, with its help texts. */
const GAUGES: readonly (readonly [name: string, help: string, figure: Figure])[] = [
  ["nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", "utilization"],
  ["nv_gpu_memory_total_bytes", "GPU total memory, in bytes", "memoryTotalBytes"],
  ["nv_gpu_memory_used_bytes", "GPU used memory, in bytes", "memoryUsedBytes"],
  ["nv_gpu_power_usage", "GPU power usage in watts", "powerUsage"],
  ["nv_gpu_power_limit", "GPU power management limit in watts", "powerLimit"],
];

/**
 * Metrics of the GPUs that CUDA shows to this process. `nvidia-smi` is asked when the metrics are scraped, at most once
 * in an interval. Nothing runs between two scrapes. On a machine without that program, the first scrape finds out.
 */
export class GpuMetrics {
  readonly #intervalMs: number;
  readonly #log: Pick<Log, "warning">;
  readonly #now: () => number;
  /** Joules of each GPU since the first reading. */
  readonly #joules = new Map<string, number>();
  #readings: readonly GpuReading[] = [];
  #readAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #over = false;
  #running: Promise<readonly GpuReading[]> | undefined;

  /**
   * @param intervalMs age up to which a reading is used again
   * @param now monotonic time in milliseconds
   */
  constructor(intervalMs: number, log: Pick<Log, "warning">, now: () => number = () => performance.now()) {
    this.#intervalMs = intervalMs;
    this.#log = log;
    this.#now = now;
  }

  families(): CollectedFamily[] {
    const gauges = GAUGES.map(([name, help, key]): CollectedFamily => {
      return {
        name,
        help,
        type: "gauge",
        collect: async () => series(await this.#read(), (gpu) => gpu[key]),
      };
    });
    const energy: CollectedFamily = {
      name: "nv_energy_consumption",
      help: "GPU energy consumption in joules since the Triton Server started",
      type: "counter",
      collect: async () => series(await this.#read(), ({ uuid }) => this.#joules.get(uuid)),
    };
    return [...gauges, energy];
  }

  #read(): Promise<readonly GpuReading[]> | readonly GpuReading[] {
    if (this.#over || this.#now() - this.#readAtMs < this.#intervalMs) return this.#readings;
    this.#running ??= this.#ask().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #ask(): Promise<readonly GpuReading[]> {
    try {
      const readings = await readGpus();
      if (readings === undefined) this.#over = true;
      else this.#take(readings);
      this.#failures = 0;
    } catch (error) {
      this.#failed(error as Error);
    }
    return this.#readings;
  }

  /** The driver's program reports no energy, so the energy is the power over the time between two readings. */
  #take(readings: readonly GpuReading[]): void {
    const now = this.#now();
    const seconds = Math.max(0, now - this.#readAtMs) / 1000;
    for (const { uuid, powerUsage } of readings) {
      if (powerUsage === undefined) continue;
      const before = this.#readings.find((one) => one.uuid === uuid)?.powerUsage;
      const joules = before === undefined ? 0 : ((before + powerUsage) / 2) * seconds;
      this.#joules.set(uuid, (this.#joules.get(uuid) ?? 0) + joules);
    }
    this.#readings = readings;
    this.#readAtMs = now;
  }

  #failed({ message }: Error): void {
    this.#failures++;
    // A stale figure would look like a measurement.
    this.#readings = [];
    this.#readAtMs = this.#now();
    this.#over = this.#failures >= MAX_FAILURES;
    const what = this.#over ? "no longer measured" : "not measured";
    this.#log.warning(`metrics of GPUs are ${what}: ${message}`);
  }
}

function series(
  gpus: readonly GpuReading[],
  value: (gpu: GpuReading) => number | undefined,
): readonly Series[] {
  return gpus.flatMap((gpu) => {
    const known = value(gpu);
    return known === undefined ? [] : [{ labels: { gpu_uuid: gpu.uuid }, value: known }];
  });
}
