import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { TritonError } from "@tritonjs/protocol";
import { type DriverGpu, loadNvml, type Nvml } from "./nvml.js";

/** GPUs that this process may use, or the reason why there are none. */
interface FoundGpus {
  /** Undefined without a driver, empty if the driver has no GPU for this process. */
  readonly numbers: readonly number[] | undefined;
  /** Why there are no GPUs. Absent if there are some. */
  readonly reason?: string;
}

const TIMEOUT_MS = 15_000;

/**
 * Lists this machine's GPUs with NVML. Without koffi or the library, `nvidia-smi` is run instead, and in containers
 * without it, device files are counted.
 */
export function findGpus(load: () => Nvml | undefined = loadNvml): FoundGpus {
  const nvml = load();
  const { gpus, reason } = nvml === undefined ? askProgram() : askLibrary(nvml);
  if (gpus === undefined) return { numbers: undefined, reason };
  if (gpus.length === 0) return { numbers: [], reason };
  const chosen = process.env.CUDA_VISIBLE_DEVICES;
  const numbers = visibleGpus(gpus, chosen);
  if (numbers.length > 0) return { numbers };
  return { numbers, reason: `CUDA_VISIBLE_DEVICES '${chosen}' hides all ${gpus.length} GPUs` };
}

type Answer =
  | { readonly gpus: readonly DriverGpu[]; readonly reason: string }
  | { readonly gpus: undefined; readonly reason: string };

function askLibrary(nvml: Nvml): Answer {
  try {
    return { gpus: nvml.list(), reason: "NVML lists no GPUs" };
  } catch (error) {
    return { gpus: undefined, reason: TritonError.from(error).message };
  }
}

function askProgram(): Answer {
  const { error, status, stdout, stderr } = spawnSync(
    "nvidia-smi",
    ["--query-gpu=index,uuid", "--format=csv,noheader"],
    { encoding: "utf8", timeout: TIMEOUT_MS, killSignal: "SIGKILL", windowsHide: true },
  );
  if (error !== undefined) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return askDeviceFiles();
    const what = code === "ETIMEDOUT" ? `did not answer within ${TIMEOUT_MS / 1000} seconds` : error.message;
    return { gpus: undefined, reason: `nvidia-smi ${what}` };
  }
  const message = firstLine(stdout) || firstLine(stderr);
  if (/no devices were found/i.test(message)) return { gpus: [], reason: `nvidia-smi reports: ${message}` };
  const gpus = readGpus(stdout);
  if (status === 0 && gpus !== undefined) return { gpus, reason: "nvidia-smi lists no GPUs" };
  return { gpus: undefined, reason: `nvidia-smi exited with ${status}: ${message || "no output"}` };
}

/** Parses lines of the form `0, GPU-5a3f...`. Undefined for any other text. */
function readGpus(text: string): DriverGpu[] | undefined {
  const gpus: DriverGpu[] = [];
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const [, number, uuid] = /^\s*(\d+)\s*,\s*(\S*)\s*$/.exec(line) ?? [];
    if (number === undefined) return undefined;
    gpus.push({ number: Number(number), uuid: uuid! });
  }
  return gpus;
}

function askDeviceFiles(): Answer {
  const reason = "nvidia-smi was not found";
  if (process.platform !== "linux") return { gpus: undefined, reason };
  const numbers = readdirSync("/dev")
    .map((name) => /^nvidia(\d+)$/.exec(name)?.[1])
    .filter((number) => number !== undefined)
    .map(Number)
    .sort((a, b) => a - b);
  return numbers.length === 0
    ? { gpus: undefined, reason }
    : { gpus: numbers.map((number) => ({ number, uuid: "" })), reason };
}

function firstLine(text: string): string {
  return (
    text
      .split("\n")
      .find((line) => line.trim() !== "")
      ?.trim() ?? ""
  );
}

/**
 * Numbers of the GPUs that CUDA shows to a program. CUDA renumbers from 0 the GPUs that `CUDA_VISIBLE_DEVICES` selects,
 * up to the first invalid entry.
 *
 * @param chosen comma-separated numbers, UUIDs or prefixes of UUIDs
 */
export function visibleGpus(all: readonly DriverGpu[], chosen: string | undefined): readonly number[] {
  if (chosen === undefined) return all.map(({ number }) => number);
  return chosenGpus(all, chosen).map((_, index) => index);
}

/** GPUs that CUDA shows to a program, in its order. */
export function chosenGpus<Gpu extends DriverGpu>(
  all: readonly Gpu[],
  chosen: string | undefined,
): readonly Gpu[] {
  if (chosen === undefined) return all;
  const gpus: Gpu[] = [];
  for (const entry of chosen.split(",").map((one) => one.trim())) {
    const gpu = all.find((one) => isMeant(one, entry));
    if (gpu === undefined) break;
    gpus.push(gpu);
  }
  return gpus;
}

function isMeant({ number, uuid }: DriverGpu, entry: string): boolean {
  if (/^\d+$/.test(entry)) return Number(entry) === number;
  return entry.startsWith("GPU-") && (uuid === "" || uuid.startsWith(entry));
}
