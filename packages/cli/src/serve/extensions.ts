import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { GpuOptions } from "@tritonjs/backends/gpu";
import type { Extension } from "@tritonjs/core/extension";
import type { CommandAdditions } from "../command-context.js";
import type { OptionValues } from "../options/options.js";
import type { SpanSettings } from "./span-tracer.js";

/** What the server is started with. */
export interface CommandLine {
  readonly values: OptionValues;
  /** What the program that runs the command adds. */
  readonly additions: CommandAdditions;
  readonly environment: NodeJS.ProcessEnv;
  /** Settings of spans, where the trace mode is "opentelemetry". */
  readonly spans: SpanSettings | undefined;
  /** Writes an error of a part of the server to its log. */
  logError(part: string, message: string): void;
}

/** An extension that the command knows. */
interface KnownExtension {
  /**
   * Whether something asks for the extension: an option, the machine, or a parameter that a model may have. Models load
   * while the server runs, so an extension that parameters ask for is loaded for every server.
   */
  asked(given: CommandLine): boolean;
  load(given: CommandLine): Promise<LoadedExtension>;
}

interface LoadedExtension {
  readonly extension: Extension;
  /** Called when all models are ready. */
  ready?(): Promise<void>;
}

/** The extensions of the command. No other file of the command names them, and a server loads those that are asked for. */
const KNOWN: readonly KnownExtension[] = [
  {
    asked: () => true,
    async load({ values, additions }) {
      const { openRepository } = await import("./repository-settings.js");
      return { extension: await openRepository(values, additions) };
    },
  },
  {
    asked: ({ values, environment }) =>
      values["gpu-fallback"] !== "none" ||
      values["cuda-memory-pool-byte-size"].length > 0 ||
      hasGpuDriver(environment),
    async load({ values }) {
      const { gpu } = await import("@tritonjs/backends/gpu");
      return { extension: gpu(gpuOptions(values)) };
    },
  },
  {
    asked: ({ spans }) => spans !== undefined,
    async load({ spans, logError }) {
      const { loadSpanTracer } = await import("./span-tracer.js");
      return { extension: await loadSpanTracer(spans!, (message) => logError("tracer", message)) };
    },
  },
  {
    // The parameters of a model can ask for it.
    asked: () => true,
    async load({ values }) {
      const { readWeights, scheduling } = await import("@tritonjs/scheduling");
      const { "shares-by": by, "shares-weights": weights } = values;
      return { extension: scheduling(by === "" ? {} : { shares: { by, weights: readWeights(weights) } }) };
    },
  },
  {
    // The parameters of a model can ask for it.
    asked: () => true,
    async load({ values }) {
      const { modelsOnDemand } = await import("@tritonjs/operations/on-demand");
      const { "model-ttl-secs": modelTtlSecs, "model-memory-budget-mb": modelMemoryBudgetMb } = values;
      const extension = modelsOnDemand({
        loadOnDemand: values["load-on-demand"],
        ...(modelTtlSecs !== 0 && { modelTtlSecs }),
        ...(modelMemoryBudgetMb !== 0 && { modelMemoryBudgetMb }),
      });
      return { extension };
    },
  },
  {
    // A model or a client may ask for a rollout.
    asked: () => true,
    async load({ values: { "rollout-directory": directory, rollout: asked } }) {
      const { rollouts, rolloutOfTexts } = await import("@tritonjs/operations/rollout");
      const extension = rollouts(directory === "" ? {} : { directory });
      return {
        extension,
        // One that is saved in the directory of rollouts goes on as it was.
        async ready() {
          for (const { model, options } of asked) await extension.start(model, rolloutOfTexts(options));
        },
      };
    },
  },
  {
    asked: ({ values }) => values["scheduling-tape"] !== "" || values["scheduling-ring"] > 0,
    async load({ values: { "scheduling-tape": file, "scheduling-ring": seconds } }) {
      const { recordScheduling } = await import("@tritonjs/operations/time-travel");
      const ring = seconds > 0 && ({ seconds, keep: "last" } as const);
      return { extension: recordScheduling({ ...(file !== "" && { file }), ...ring }) };
    },
  },
  {
    asked: ({ values }) => values["capture-directory"] !== "",
    async load({ values }) {
      const { capture } = await import("@tritonjs/operations/capture");
      return { extension: capture({ directory: values["capture-directory"], rate: values["capture-rate"] }) };
    },
  },
];

/**
 * Loads the extensions that a command line asks for.
 *
 * @throws OptionError for options that name no repository, and TritonError for settings that an extension cannot have, or
 * a package that is not installed
 */
export function loadExtensions(given: CommandLine): Promise<LoadedExtension[]> {
  return Promise.all(KNOWN.filter(({ asked }) => asked(given)).map(({ load }) => load(given)));
}

/** The extensions that the parameters of a model may ask for, to check configurations without a server. */
export async function extensionsOfModels(): Promise<Extension[]> {
  const [{ scheduling }, { modelsOnDemand }, { rollouts }] = await Promise.all([
    import("@tritonjs/scheduling"),
    import("@tritonjs/operations/on-demand"),
    import("@tritonjs/operations/rollout"),
  ]);
  return [scheduling(), modelsOnDemand(), rollouts()];
}

export function gpuOptions(values: OptionValues): GpuOptions {
  return {
    ...(values["gpu-fallback"] === "cpu" && { fallback: "cpu" }),
    pinnedMemoryPoolByteSize: Math.max(0, values["pinned-memory-pool-byte-size"]),
    cudaMemoryPoolByteSize: Object.fromEntries(
      values["cuda-memory-pool-byte-size"].map(([device, byteSize]) => [device, Math.max(0, byteSize)]),
    ),
    metrics: values["allow-gpu-metrics"],
    metricsIntervalMs: values["metrics-interval-ms"],
  };
}

/** Device files of NVIDIA's driver, also inside of containers and of Windows' Linux. */
const DEVICE_FILES = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"];

/** Whether NVIDIA's driver is installed: it has device files, or the program `nvidia-smi`. */
function hasGpuDriver({ PATH = "" }: NodeJS.ProcessEnv): boolean {
  const program = process.platform === "win32" ? "nvidia-smi.exe" : "nvidia-smi";
  const programs = PATH.split(delimiter).map((folder) => join(folder, program));
  return [...DEVICE_FILES, ...programs].some((file) => existsSync(file));
}
