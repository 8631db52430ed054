import type { Extension, Gpus } from "@tritonjs/core/extension";
import { GpuMetrics, poolFamilies } from "./gpu-metrics.js";
import { poolsOf } from "./pools-of.js";
import { type GpuPlacement, MachineGpus, ServerGpus } from "./server-gpus.js";

/*
 * `@tritonjs/backends/gpu`: NVIDIA's GPUs for instances, memory for tensors on them, and their metrics.
 */

/** Options of `gpu`. */
export interface GpuOptions extends GpuPlacement {
  /** Whether the metrics show the GPUs, as the driver reports them on a scrape. @default true */
  readonly metrics?: boolean;
  /** Age in milliseconds up to which a measurement of the GPUs is used again. @default 2000 */
  readonly metricsIntervalMs?: number;
}

/**
 * Lets a server run instances on NVIDIA's GPUs: those of this machine, or those that a program lists. Models of ONNX
 * Runtime and Python keep tensors there, clients may share CUDA memory, and the metrics show the GPUs. The driver and
 * CUDA's library are asked when they are first needed.
 *
 * @throws TritonError INVALID_ARG for an invalid option, when the server is made
 * @example
 * ```ts
 * const triton = new Triton({ extensions: [repository({ modelRepository: "models" }), gpu({ fallback: "cpu" })] });
 * ```
 */
export function gpu(options: GpuOptions = {}): Extension {
  const { metrics = true, metricsIntervalMs = 2000, numbers } = options;
  return {
    name: "gpu",
    gpus: (log) => new ServerGpus(options, log),
    attach({ gpus, log }) {
      const pools = poolsOf(gpus);
      const hasFigures = metrics && numbers?.length !== 0;
      const families = [
        ...(hasFigures ? new GpuMetrics(metricsIntervalMs, log("metrics")).families() : []),
        ...(pools === undefined ? [] : poolFamilies(pools)),
      ];
      return { families: () => families };
    },
  };
}

/** The GPUs of this machine, for tools that check configurations without a server. */
export function machineGpus(): Gpus {
  return new MachineGpus();
}
