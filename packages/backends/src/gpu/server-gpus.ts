import type { DeviceNames, Gpus, Log } from "@tritonjs/core/extension";
import { errorFor } from "@tritonjs/protocol";
import { type CudaPoolLimits, CudaPools } from "./cuda-pools.js";
import { findGpus } from "./driver-gpus.js";
import { gpuRegions } from "./gpu-regions.js";
import { loadNvml, type Nvml } from "./nvml.js";

type GpuLog = Pick<Log, "info" | "warning">;

/** The GPUs of this machine. They are looked up at the first access, which asks the driver. */
export class MachineGpus implements Gpus {
  readonly #log: GpuLog | undefined;
  #found: { readonly numbers: readonly number[] | undefined } | undefined;

  /** @param log gets one message: the GPUs that were found, or why none was found */
  constructor(
    log?: GpuLog,
    private readonly nvml: () => Nvml | undefined = loadNvml,
  ) {
    this.#log = log;
  }

  get numbers(): readonly number[] | undefined {
    if (this.#found === undefined) {
      const { numbers, reason } = findGpus(this.nvml);
      this.#found = { numbers };
      if (reason === undefined) this.#log?.info(`GPUs for instances: ${numbers!.join(", ")}`);
      else this.#log?.warning(`no GPU can be used for instances: ${reason}`);
    }
    return this.#found.numbers;
  }
}

/** Which GPUs a server uses, and their memory. */
export interface GpuPlacement extends CudaPoolLimits {
  /**
   * Numbers of the GPUs that instance groups may name. An empty list makes the server use no GPU.
   * @default the GPUs of this machine, as the driver lists them when a configuration first needs them
   */
  readonly numbers?: readonly number[];
  /**
   * `cpu` runs instances of `KIND_GPU` on the CPU where there is no GPU, as many as on one GPU. The log says so once for
   * each model, and its configuration as served has `KIND_CPU`.
   * @default such a model is refused
   */
  readonly fallback?: "cpu";
}

/** The GPUs of a server, with the pools of memory for tensors on them. */
export class ServerGpus implements Gpus {
  readonly regions = gpuRegions;
  readonly pools: CudaPools;
  readonly #gpus: Gpus;
  readonly #fallsBack: boolean;
  readonly #told = new Set<string>();

  /**
   * @param log log of a part of the server
   * @throws TritonError INVALID_ARG for an invalid option
   */
  constructor(
    placement: GpuPlacement,
    private readonly log: (part: string) => GpuLog,
  ) {
    const { numbers, fallback } = placement;
    if (numbers !== undefined && !numbers.every((one) => Number.isInteger(one) && one >= 0)) {
      throw errorFor("INVALID_OPTION", `gpu.numbers: expected numbers of GPUs, got ${numbers.join(", ")}`);
    }
    if (fallback !== undefined && fallback !== "cpu") {
      throw errorFor("INVALID_OPTION", `gpu.fallback: expected "cpu", got '${String(fallback)}'`);
    }
    this.#gpus = numbers === undefined ? new MachineGpus(log("gpus")) : listedGpus(numbers);
    this.#fallsBack = fallback === "cpu";
    this.pools = new CudaPools(placement, log("memory"));
  }

  get numbers(): readonly number[] | undefined {
    return this.#gpus.numbers;
  }

  get pinnedMemory(): { readonly total: number; readonly used: number } {
    return this.pools.pinnedUsage;
  }

  namesOf(id: number): DeviceNames {
    return cudaNames(id);
  }

  runsOnCpu(model: string): boolean {
    if (!this.#fallsBack || (this.numbers !== undefined && this.numbers.length > 0)) return false;
    if (!this.#told.has(model)) {
      this.#told.add(model);
      const text = `the instances of KIND_GPU of model '${model}' run on the CPU: there is no GPU`;
      this.log("gpus").warning(text);
    }
    return true;
  }
}

/** @param id number among the GPUs that this process sees */
export function cudaNames(id: number): DeviceNames {
  const visible = process.env.CUDA_VISIBLE_DEVICES?.split(",")[id]?.trim();
  return {
    executionProviders: [{ name: "cuda", deviceId: id }, "cpu"],
    torch: `cuda:${id}`,
    environment: { CUDA_VISIBLE_DEVICES: visible || String(id) },
  };
}

/** The GPUs that a program lists. An empty list means no GPU. */
export function listedGpus(numbers: readonly number[]): Gpus {
  return { numbers: numbers.length === 0 ? undefined : numbers };
}
