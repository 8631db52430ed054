import { type ModelConfig, TritonError } from "@tritonjs/protocol";

/** Parameters of Triton's onnxruntime backend that set options which onnxruntime-node does not pass on. */
const NO_EFFECT = [
  "cudnn_conv_algo_search",
  "gpu_mem_limit",
  "arena_extend_strategy",
  "do_copy_in_default_stream",
  "use_tf32",
  "memory.enable_memory_arena_shrinkage",
];

/** How many values those have that are numbers of choices. */
const CHOICES: Readonly<Record<string, number>> = { cudnn_conv_algo_search: 3, arena_extend_strategy: 2 };

/**
 * Tells of parameters and settings that Triton would set options with, and that have no effect here.
 *
 * @throws TritonError INVALID_ARG for values that Triton refuses, where it would look at them: for instances on a GPU
 */
export function warnOfUnused(
  { name, parameters, instanceGroup }: ModelConfig,
  settings: Readonly<Record<string, string>>,
  warn: (message: string) => void,
): void {
  if (instanceGroup.some(({ kind }) => kind === "KIND_GPU")) {
    for (const [key, count] of Object.entries(CHOICES)) {
      const value = parameters[key]?.stringValue;
      if (value === undefined || (/^\s*\d+$/.test(value) && Number(value) < count)) continue;
      throw new TritonError("INVALID_ARG", `unsupported ${key} value '${value}' is requested`, {
        reason: "INVALID_CONFIG",
      });
    }
  }
  const unused = NO_EFFECT.filter((key) => Object.hasOwn(parameters, key));
  if (unused.length > 0) {
    warn(
      `model '${name}': parameters ${unused.map((key) => `'${key}'`).join(", ")} have no effect: onnxruntime-node does ` +
        "not pass them on",
    );
  }
  if (settings["enable-global-threadpool"] === "1") {
    warn(
      `model '${name}': the setting 'enable-global-threadpool' has no effect: sessions of onnxruntime-node have threads ` +
        "of their own; set 'intra_op_thread_count'",
    );
  }
}
