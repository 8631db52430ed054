import type { ModelConfig } from "@tritonjs/protocol";

/** Effect of a field. A row applies to all fields of its message that have no row of their own. */
export interface FieldSupport {
  /** Effect of the field. */
  readonly honoured?: string;
  /** Why the field is accepted but has no effect. */
  readonly noEffect?: string;
  /** What to do about a field that cannot be honoured. Undefined for a configuration in which it is accepted. */
  readonly refused?: (config: ModelConfig) => string | undefined;
  /** When the field is refused, in words. Given together with `refused`. */
  readonly refusedWhen?: string;
}

const honoured = (what: string): FieldSupport => ({ honoured: what });
const noEffect = (why: string): FieldSupport => ({ noEffect: why });

/**
 * Every field of `ModelConfig`, in the order of model_config.proto: honoured, accepted without an effect, or refused.
 * The loader refuses and warns by this table, and docs/model-configuration.md is generated from it.
 */
export const FIELD_SUPPORT: Readonly<Record<string, FieldSupport>> = {
  name: honoured("the name of the model, which is that of its directory"),
  platform: honoured("names the backend: `onnxruntime_onnx`, `ensemble`"),
  backend: honoured("what runs the model"),
  runtime: {
    noEffect: "backends are part of the library, so there is no shared library to choose",
    refusedWhen: "anything but `libtriton_<backend>.so`",
    refused: ({ runtime, backend, name }) =>
      runtime === `libtriton_${backend}.so`
        ? undefined
        : `is '${runtime}': unable to find backend library '${runtime}' for model '${name}'; backends are part of the ` +
          "library: remove 'runtime'",
  },
  version_policy: honoured("which versions are served; the latest one when absent"),
  max_batch_size: honoured("most rows in a batch; with 0 the dims are whole shapes"),
  input: honoured("the inputs"),
  "input.format": noEffect("the dims are checked to be 3; what a dimension means is the model's business"),
  "input.is_non_linear_format_io": {
    refusedWhen: "always",
    refused: () => "is a format of TensorRT: remove it, and give the model linear tensors",
  },
  output: honoured("the outputs; `label_filename` names classes for classification"),
  "output.is_non_linear_format_io": {
    refusedWhen: "always",
    refused: () => "is a format of TensorRT: remove it, and give the model linear tensors",
  },
  batch_input: honoured("inputs that say where the requests of a batch begin and end"),
  batch_output: honoured("outputs that are split by the shapes of an input"),
  optimization: honoured("hints to the backend"),
  "optimization.graph": honoured("how far onnxruntime optimizes the graph"),
  "optimization.priority": noEffect(
    "threads of Node have no priorities; a host policy may give a process one",
  ),
  "optimization.cuda": noEffect(
    "CUDA graphs are made by TensorRT; onnxruntime has an option of its provider for it",
  ),
  "optimization.execution_accelerators": honoured("execution providers of onnxruntime, and their options"),
  "optimization.input_pinned_memory": noEffect("batches are gathered in the memory of Node"),
  "optimization.output_pinned_memory": noEffect("batches are gathered in the memory of Node"),
  "optimization.gather_kernel_buffer_threshold": noEffect(
    "batches are gathered on the CPU, without a kernel",
  ),
  "optimization.eager_batching": noEffect(
    "a batch is gathered when it is complete, which takes no other thread's time",
  ),
  dynamic_batching: honoured("requests wait for others and run as one batch"),
  sequence_batching: honoured("requests with one correlation id go to one instance, one after the other"),
  "sequence_batching.state.use_same_buffer_for_input_output": noEffect("states are handed over, not copied"),
  "sequence_batching.state.use_growable_memory": noEffect("a state takes as much memory as it needs"),
  ensemble_scheduling: honoured("the models of an ensemble and how tensors go from one to another"),
  instance_group: honoured("how many instances, and where they run"),
  "instance_group.secondary_devices": noEffect("no backend here uses accelerators beside a GPU"),
  "instance_group.profile": {
    refusedWhen: "always",
    refused: () => "chooses a profile of a TensorRT model: remove it",
  },
  default_model_filename: honoured("the model's file in each version directory"),
  cc_model_filenames: noEffect(
    "one file serves GPUs of every compute capability: that of `default_model_filename`",
  ),
  metric_tags: honoured("labels of the model's metrics"),
  parameters: honoured("options of the backend, and what the model wants to know"),
  model_warmup: honoured("requests that run before an instance serves"),
  model_operations: {
    noEffect: "only onnxruntime has operators of its own",
    refusedWhen: "with backend `onnxruntime`",
    refused: ({ backend, modelOperations }) =>
      backend === "onnxruntime" && (modelOperations?.opLibraryFilename.length ?? 0) > 0
        ? "names libraries of operators, which onnxruntime-node cannot load: export the model with standard operators"
        : undefined,
  },
  model_transaction_policy: honoured("whether a request may have any number of responses"),
  model_repository_agents: honoured("who looks after a model of a repository while it comes and goes"),
  response_cache: honoured("whether equal requests are answered from the cache"),
  model_metrics: honoured("buckets of the histogram of the time to the first response"),
};
