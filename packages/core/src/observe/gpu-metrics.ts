import { execFile } from "node:child_process";
import { chosenGpus, type DriverGpu } from "../config/gpus.js";
import { startProcess } from "../system/start-process.js";
import type { Log } from "./log.js";
import type { CollectedFamily, Series } from "./metric-families.js";

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
  constructor(
    private readonly intervalMs: number,
    private readonly log: Pick<Log, "warning">,
    now: () => number = () => performance.now(),
  ) {
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
    if (this.#over || this.#now() - this.#readAtMs < this.intervalMs) return this.#readings;
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
    this.log.warning(`metrics of GPUs are ${what}: ${message}`);
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

/** What the driver measured of one GPU. A figure that it does not know is undefined. */
interface GpuReading extends DriverGpu {
  /** Share of time in which the GPU was busy, from 0 to 1. */
  readonly utilization: number | undefined;
  readonly memoryTotalBytes: number | undefined;
  readonly memoryUsedBytes: number | undefined;
  /** Watts. */
  readonly powerUsage: number | undefined;
  /** Watts. */
  readonly powerLimit: number | undefined;
}

/** Fields of a line, in the order in which they are read. */
const QUERY = "index,uuid,utilization.gpu,memory.total,memory.used,power.draw,power.limit";

const TIMEOUT_MS = 5_000;

const BYTES_PER_MIB = 1_048_576;

/**
 * Reads the figures of all GPUs that CUDA shows to this process, with NVIDIA's `nvidia-smi`.
 *
 * @returns undefined if the program does not exist
 * @throws Error if the program fails, takes too long, or prints something else
 */
async function readGpus(): Promise<readonly GpuReading[] | undefined> {
  const text = await askDriver();
  if (text === undefined) return undefined;
  if (/no devices were found/i.test(text)) return [];
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return chosenGpus(lines.map(readLine), process.env.CUDA_VISIBLE_DEVICES);
}

/** The output of the program, or undefined if it does not exist. */
function askDriver(): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    startProcess(() =>
      execFile(
        "nvidia-smi",
        [`--query-gpu=${QUERY}`, "--format=csv,noheader,nounits"],
        { encoding: "utf8", timeout: TIMEOUT_MS, killSignal: "SIGKILL", windowsHide: true },
        (error, stdout, stderr) => {
          if (error === null) return resolve(stdout);
          if (error.code === "ENOENT") return resolve(undefined);
          const said = `${stdout}\n${stderr}`.trim().split("\n")[0];
          const how = error.killed
            ? `did not answer within ${TIMEOUT_MS / 1000} seconds`
            : said || error.message;
          reject(new Error(`nvidia-smi: ${how}`));
        },
      ),
    );
  });
}

/** Parses a line of the form `0, GPU-5a3f..., 17, 81559, 4213, 121.53, 700.00`. */
function readLine(line: string): GpuReading {
  const [number, uuid, utilization, total, used, power, limit, ...rest] = line
    .split(",")
    .map((field) => field.trim());
  if (!/^\d+$/.test(number ?? "") || uuid === undefined || limit === undefined || rest.length > 0) {
    throw new Error(`nvidia-smi: expected a line of 7 fields (${QUERY}), got '${line.trim()}'`);
  }
  return {
    number: Number(number),
    uuid,
    utilization: figure(utilization, 0.01),
    memoryTotalBytes: figure(total, BYTES_PER_MIB),
    memoryUsedBytes: figure(used, BYTES_PER_MIB),
    powerUsage: figure(power, 1),
    powerLimit: figure(limit, 1),
  };
}

/** A number, or undefined for a text such as `[N/A]`. */
function figure(text: string | undefined, unit: number): number | undefined {
  return text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) * unit : undefined;
}
