import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { InstancePlacement } from "../../config/instances.js";
import type { Backend, ExecutorContext } from "../../instance/backend.js";
import { WorkerExecutor } from "../../instance/worker/worker-executor.js";
import type { SessionData } from "./create-session.js";
import { describeOnnxModel } from "./describe-model.js";
import type { ExecutionProvider, OnnxRuntimeOptions } from "./options.js";

export type { ExecutionProvider, OnnxRuntimeOptions } from "./options.js";

/**
 * A backend that runs an ONNX model with ONNX Runtime, each instance in a worker thread with a session of its
 * own. Inputs, outputs and whether the model can batch (all first dimensions variable) come from the file when
 * `bind` is not told.
 *
 * @throws TritonError at `bind` for a missing file (NOT_FOUND), one that is no ONNX model (INVALID_ARG) and
 * types that cannot pass through Node (UNSUPPORTED).
 * @example
 * ```ts
 * triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: "iris.onnx" }) });
 * ```
 */
export function onnxruntime(options: OnnxRuntimeOptions): Backend {
  const model = options.model instanceof URL ? fileURLToPath(options.model) : options.model;
  return {
    backendName: "onnxruntime",
    platform: "onnxruntime_onnx",
    isolations: ["worker", "process"],
    describe: () => describeOnnxModel(model),
    createExecutor: (context) => {
      const data: SessionData = {
        model,
        providers: providersFor(context.placement, options.executionProviders),
        strict: options.strictProviders ?? false,
        sessionOptions: sessionOptions(options, context),
      };
      const program = { entry: new URL("./session-model.js", import.meta.url), data, interruptible: false };
      const warn = options.onWarning ?? ((message: string) => process.emitWarning(message, "TritonWarning"));
      return new WorkerExecutor(program, { ...context, warn });
    },
  };
}

function sessionOptions(
  options: OnnxRuntimeOptions,
  { instanceCount }: ExecutorContext,
): Record<string, unknown> {
  const { interOpNumThreads, graphOptimizationLevel, executionMode, enableCpuMemArena, enableMemPattern } =
    options;
  return {
    intraOpNumThreads:
      options.intraOpNumThreads ?? Math.max(1, Math.floor(availableParallelism() / instanceCount)),
    ...(interOpNumThreads === undefined ? {} : { interOpNumThreads }),
    ...(graphOptimizationLevel === undefined ? {} : { graphOptimizationLevel }),
    ...(executionMode === undefined ? {} : { executionMode }),
    ...(enableCpuMemArena === undefined ? {} : { enableCpuMemArena }),
    ...(enableMemPattern === undefined ? {} : { enableMemPattern }),
  };
}

/** The providers to try; on a GPU instance, the CUDA ones are told which GPU. */
function providersFor(
  { kind, deviceId }: InstancePlacement,
  given: readonly ExecutionProvider[] | undefined,
): readonly ExecutionProvider[] {
  const providers = given ?? (kind === "KIND_GPU" ? ["cuda", "cpu"] : ["cpu"]);
  if (kind !== "KIND_GPU") return providers;
  return providers.map((provider) => {
    const options = typeof provider === "string" ? { name: provider } : provider;
    return options.name === "cuda" || options.name === "tensorrt" ? { deviceId, ...options } : provider;
  });
}
