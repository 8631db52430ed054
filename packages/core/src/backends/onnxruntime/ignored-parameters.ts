import { type ModelConfig, TritonError } from "@tritonjs/protocol";

/** Parameters of Triton's onnxruntime backend whose options onnxruntime-node does not pass on. */
const NO_EFFECT = [
  "cudnn_conv_algo_search",
  "gpu_mem_limit",
  "arena_extend_strategy",
  "do_copy_in_default_stream",
  "use_tf32",
  "memory.enable_memory_arena_shrinkage",
];

/** Number of choices of each parameter whose value is the number of a choice. */
const CHOICES: Readonly<Record<string, number>> = { cudnn_conv_algo_search: 3, arena_extend_strategy: 2 };

/**
 * Warns of parameters and settings that set options in Triton and have no effect here.
 *
 * @throws TritonError INVALID_ARG for values that Triton rejects, for instances on a GPU: Triton reads the values only
 * there
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
