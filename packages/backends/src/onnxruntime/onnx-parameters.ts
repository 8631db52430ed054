import { DeclaredParameters } from "@tritonjs/core/internal";

/** Options of CUDA that are parameters of the model. */
export const CUDA_PARAMETERS = [
  "cudnn_conv_algo_search",
  "gpu_mem_limit",
  "arena_extend_strategy",
  "do_copy_in_default_stream",
  "use_tf32",
] as const;

/** The parameter that is an entry of the configuration of a run. */
export const SHRINKAGE = "memory.enable_memory_arena_shrinkage";

/**
 * Entries of ONNX Runtime's session configuration whose values are numbers, switches and words. Any other may name a
 * file, as `session.optimized_model_filepath` and `session.collect_node_memory_stats_to_file` do.
 */
const SESSION_VALUES = {
  session: `allow_released_opsets_only compile_only debug_layout_transformation disable_aot_function_inlining
    disable_cpu_ep_fallback disable_double_qdq_remover disable_model_compile disable_prepacking
    disable_qdq_constant_folding disable_quant_qdq dynamic_block_base enable_cpu_mem_arena
    enable_dq_matmulnbits_fusion enable_mem_pattern enable_quant_qdq_cleanup execution_mode
    fail_on_suboptimal_compiled_model force_spinning_stop gqa_value_layout graph_optimization_level
    graph_optimizations_loop_level inter_op.allow_spinning inter_op.spin_backoff_max inter_op.spin_duration_us
    inter_op_num_threads intra_op.allow_spinning intra_op.spin_backoff_max intra_op.spin_duration_us
    intra_op_num_threads intra_op_thread_affinities load_model_format log_id log_severity_level
    log_verbosity_level max_shape_override qdq_matmulnbits_accuracy_level qdq_matmulnbits_block_size
    qdqisint8allowed set_denormal_as_zero strict_shape_type_inference use_deterministic_compute
    use_device_allocator_for_initializers use_env_allocators use_memory_mapped_ort_model use_ort_model_bytes_directly
    use_ort_model_bytes_for_initializers use_per_session_threads x64quantprecision`,
  optimization:
    "disable_specified_optimizers enable_cast_chain_elimination enable_gelu_approximation minimal_build_optimizations",
  mlas: `disable_kleidiai enable_gemm_fastmath_arm64_bfloat16 kleidiai.conv_igemm_max_work
    nchwc_pointwise_conv_max_input_channel_batch use_lut_gemm`,
};

/** The parameters of models of ONNX Runtime. */
export const ONNX_PARAMETERS = new DeclaredParameters({
  execute: ["library"],
  write: ["session.*", "optimization.*", "mlas.*"],
  value: [
    "engine",
    "intra_op_thread_count",
    "inter_op_thread_count",
    "execution_mode",
    "enable_mem_arena",
    "enable_mem_pattern",
    "strict_execution_providers",
    "log_severity_level",
    SHRINKAGE,
    ...CUDA_PARAMETERS,
    ...Object.entries(SESSION_VALUES).flatMap(([group, names]) =>
      names.split(/\s+/).map((name) => `${group}.${name}` as "session.log_id"),
    ),
  ],
});

/**
 * Options of execution providers whose values are numbers, switches and words. Any other may name a file, as
 * `trt_engine_cache_path` of TensorRT, `cache_dir` of OpenVINO and `backend_path` of QNN do, or lets a provider write
 * files.
 */
const PROVIDER_VALUES = `device_id precision_mode gpu_mem_limit arena_extend_strategy cudnn_conv_algo_search
  do_copy_in_default_stream use_tf32 cudnn_conv_use_max_workspace cudnn_conv1d_pad_to_nc1d enable_cuda_graph
  enable_skip_layer_norm_strict_mode tunable_op_enable tunable_op_tuning_enable tunable_op_max_tuning_duration_ms
  prefer_nhwc use_ep_level_unified_stream fuse_conv_bias sdpa_kernel miopen_conv_exhaustive_search
  miopen_conv_use_max_workspace max_workspace_size_bytes int8_use_native_calibration_table
  trt_max_partition_iterations trt_min_subgraph_size trt_dla_enable trt_dla_core trt_force_sequential_engine_build
  trt_context_memory_sharing_enable trt_layer_norm_fp32_fallback trt_detailed_build_log trt_build_heuristics_enable
  trt_sparsity_enable trt_builder_optimization_level trt_auxiliary_streams trt_tactic_sources
  trt_profile_min_shapes trt_profile_max_shapes trt_profile_opt_shapes trt_cuda_graph_enable
  trt_ep_context_embed_mode device_type precision num_of_threads num_streams model_priority
  enable_opencl_throttling enable_qdq_optimizer disable_dynamic_shapes reshape_input layout backend_type backendType
  rpc_control_latency vtcm_mb htp_performance_mode htp_graph_finalization_optimization_mode htp_arch soc_model
  qnn_context_priority enable_htp_fp16_precision offload_graph_io_quantization ModelFormat MLComputeUnits
  RequireStaticInputShapes EnableOnSubgraphs SpecializationStrategy AllowLowPrecisionAccumulationOnGPU coreml_flags
  use_arena device_filter performance_preference disable_metacommands enable_graph_capture intra_op_num_threads
  migraphx_fp16_enable migraphx_fp8_enable migraphx_int8_enable migraphx_exhaustive_tune npu_mem_limit
  enable_cann_graph op_select_impl_mode preferredLayout validationMode storageBufferCacheMode
  uniformBufferCacheMode queryResolveBufferCacheMode defaultBufferCacheMode`;

/** The options of execution providers. */
export const PROVIDER_OPTIONS = new DeclaredParameters<string>({
  write: ["*"],
  value: PROVIDER_VALUES.split(/\s+/),
}).own;
