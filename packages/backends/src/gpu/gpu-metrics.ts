import { execFile } from "node:child_process";
import type { CollectedFamily, Log, Series } from "@tritonjs/core/extension";
import { startProcess } from "@tritonjs/core/internal/worker";
import type { CudaPools } from "./cuda-pools.js";
import { chosenGpus } from "./driver-gpus.js";
import { type GpuReading, loadNvml, type Nvml } from "./nvml.js";

/** Metrics of the pools of GPUs that a model has used. They are specific to this library. */
export function poolFamilies(pools: Pick<CudaPools, "deviceUsage">): CollectedFamily[] {
  const family = (name: string, help: string, key: "total" | "used"): CollectedFamily => ({
    name,
    help,
    type: "gauge",
    collect: () => pools.deviceUsage.map((pool) => ({ labels: { gpu: String(pool.id) }, value: pool[key] })),
  });
  return [
    family(
      "tritonjs_cuda_memory_pool_total_bytes",
      "Bytes that inputs and outputs may take on a GPU",
      "total",
    ),
    family("tritonjs_cuda_memory_pool_used_bytes", "Bytes that inputs and outputs take on a GPU", "used"),
  ];
}

/** After this many failures in a row, the driver is not asked again: as in Triton. */
const MAX_FAILURES = 3;

type Figure = Exclude<keyof GpuReading, "number" | "uuid">;

/** Triton's gauges by name, with its help texts. */
const GPU_GAUGES: readonly (readonly [name: string, help: string, figure: Figure])[] = [
  ["nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", "utilization"],
  ["nv_gpu_memory_total_bytes", "GPU total memory, in bytes", "memoryTotalBytes"],
  ["nv_gpu_memory_used_bytes", "GPU used memory, in bytes", "memoryUsedBytes"],
  ["nv_gpu_power_usage", "GPU power usage in watts", "powerUsage"],
  ["nv_gpu_power_limit", "GPU power management limit in watts", "powerLimit"],
];

/**
 * Metrics of the GPUs that CUDA shows to this process. NVML is asked when the metrics are scraped, at most once in an
 * interval, or `nvidia-smi` where koffi or NVML is missing. Nothing runs between two scrapes. On a machine without
 * either, the first scrape finds out.
 */
export class GpuMetrics {
  readonly #now: () => number;
  /** Joules of each GPU since the first reading. */
  readonly #joules = new Map<string, number>();
  /** The driver's counter of each GPU at the first reading. */
  readonly #firstEnergy = new Map<string, number>();
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
    private readonly nvml: () => Nvml | undefined = loadNvml,
  ) {
    this.#now = now;
  }

  families(): CollectedFamily[] {
    const gauges = GPU_GAUGES.map(([name, help, key]): CollectedFamily => {
      return {
        name,
        help,
        type: "gauge",
        collect: async () => gpuSeries(await this.#read(), (gpu) => gpu[key]),
      };
    });
    const energy: CollectedFamily = {
      name: "nv_energy_consumption",
      help: "GPU energy consumption in joules since the Triton Server started",
      type: "counter",
      collect: async () => gpuSeries(await this.#read(), ({ uuid }) => this.#joules.get(uuid)),
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
      const readings = await readGpus(this.nvml());
      if (readings === undefined) this.#over = true;
      else this.#take(readings);
      this.#failures = 0;
    } catch (error) {
      this.#failed(error as Error);
    }
    return this.#readings;
  }

  /** `nvidia-smi` reports no energy, so the energy is then the power over the time between two readings. */
  #take(readings: readonly GpuReading[]): void {
    const now = this.#now();
    const seconds = Math.max(0, now - this.#readAtMs) / 1000;
    for (const { uuid, powerUsage, energy } of readings) {
      if (energy !== undefined) {
        if (!this.#firstEnergy.has(uuid)) this.#firstEnergy.set(uuid, energy);
        this.#joules.set(uuid, energy - this.#firstEnergy.get(uuid)!);
        continue;
      }
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

function gpuSeries(
  gpus: readonly GpuReading[],
  value: (gpu: GpuReading) => number | undefined,
): readonly Series[] {
  return gpus.flatMap((gpu) => {
    const known = value(gpu);
    return known === undefined ? [] : [{ labels: { gpu_uuid: gpu.uuid }, value: known }];
  });
}

/** Fields of a line, in the order in which they are read. */
const QUERY = "index,uuid,utilization.gpu,memory.total,memory.used,power.draw,power.limit";

const TIMEOUT_MS = 5_000;

const BYTES_PER_MIB = 1_048_576;

/**
 * Reads the figures of all GPUs that CUDA shows to this process, with NVML or with NVIDIA's `nvidia-smi`.
 *
 * @returns undefined if neither exists
 * @throws Error if NVML or the program fails, or the program takes too long or prints something else
 */
async function readGpus(nvml: Nvml | undefined): Promise<readonly GpuReading[] | undefined> {
  if (nvml !== undefined) {
    return chosenGpus(await inTime(nvml.read(), "NVML"), process.env.CUDA_VISIBLE_DEVICES);
  }
  const text = await askDriver();
  if (text === undefined) return undefined;
  if (/no devices were found/i.test(text)) return [];
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return chosenGpus(lines.map(readLine), process.env.CUDA_VISIBLE_DEVICES);
}

/** Waits for an answer of the driver for a limited time. */
async function inTime<T>(answer: Promise<T>, who: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const text = `${who}: did not answer within ${TIMEOUT_MS / 1000} seconds`;
    timer = setTimeout(() => reject(new Error(text)), TIMEOUT_MS);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

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
          const message = `${stdout}\n${stderr}`.trim().split("\n")[0];
          const how = error.killed
            ? `did not answer within ${TIMEOUT_MS / 1000} seconds`
            : message || error.message;
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
