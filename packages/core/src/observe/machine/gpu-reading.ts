import { execFile } from "node:child_process";
import { chosenGpus, type DriverGpu } from "../../config/placement/find-gpus.js";
import { startProcess } from "../../files/start-process.js";

/** What the driver measured of one GPU. A figure that it does not know is undefined. */
export interface GpuReading extends DriverGpu {
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
export async function readGpus(): Promise<readonly GpuReading[] | undefined> {
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
