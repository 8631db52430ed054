import { TritonError } from "@tritonjs/protocol";

/** Parameters of Triton's accelerator `tensorrt`. */
const PARAMETERS: ReadonlySet<string> = new Set([
  "precision_mode",
  "max_workspace_size_bytes",
  "int8_calibration_table_name",
  "int8_use_native_calibration_table",
  "trt_max_partition_iterations",
  "trt_min_subgraph_size",
  "trt_dla_enable",
  "trt_dla_core",
  "trt_engine_cache_enable",
  "trt_engine_cache_path",
  "trt_engine_cache_prefix",
  "trt_dump_subgraphs",
  "trt_force_sequential_engine_build",
  "trt_context_memory_sharing_enable",
  "trt_layer_norm_fp32_fallback",
  "trt_timing_cache_enable",
  "trt_timing_cache_path",
  "trt_force_timing_cache",
  "trt_detailed_build_log",
  "trt_build_heuristics_enable",
  "trt_sparsity_enable",
  "trt_builder_optimization_level",
  "trt_auxiliary_streams",
  "trt_tactic_sources",
  "trt_extra_plugin_lib_paths",
  "trt_profile_min_shapes",
  "trt_profile_max_shapes",
  "trt_profile_opt_shapes",
  "trt_cuda_graph_enable",
  "trt_dump_ep_context_model",
  "trt_ep_context_file_path",
  "trt_ep_context_embed_mode",
]);

const PRECISIONS: readonly string[] = ["FP32", "FP16", "BF16", "INT8"];

/** @throws TritonError INVALID_ARG for parameters that Triton's onnxruntime backend rejects, with its text */
export function checkTensorrtParameters(parameters: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(parameters)) {
    if (!PARAMETERS.has(key)) {
      throw new TritonError(
        "INVALID_ARG",
        `unknown parameter '${key}' is provided for TensorRT Execution Accelerator`,
        { reason: "INVALID_CONFIG" },
      );
    }
    if (key === "precision_mode" && !PRECISIONS.includes(value)) {
      throw new TritonError("INVALID_ARG", `unsupported precision mode '${value}' is requested`, {
        reason: "INVALID_CONFIG",
      });
    }
  }
}
