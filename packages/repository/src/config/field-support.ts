import type { ModelConfig } from "@tritonjs/protocol";
import {
  type FieldSchema,
  fieldsOf,
  isMessage,
  type MessageSchema,
  modelConfigSchema,
  type PlainMessage,
  zeroOf,
} from "@tritonjs/protocol/config";

/** Lists set fields that cannot be honoured, one per line, each with what to do about it. */
export function fieldProblems(config: ModelConfig): string[] {
  return setFields(config).flatMap(([path, support]) => {
    const message = support.refused?.(config);
    return message === undefined ? [] : [`model '${config.name}': '${path}' ${message}`];
  });
}

/** Lists set fields that are accepted without an effect, one per line, each with the reason. The lines are logged. */
export function fieldNotes(config: ModelConfig): string[] {
  return setFields(config).flatMap(([path, { noEffect, refused }]) =>
    noEffect === undefined || refused?.(config) !== undefined
      ? []
      : [`model '${config.name}': '${path}' has no effect: ${noEffect}`],
  );
}

/** Rows of the table whose field is set. */
function setFields(config: ModelConfig): (readonly [path: string, support: FieldSupport])[] {
  const paths = new Set<string>();
  collect(fieldsOf(config), modelConfigSchema, "", paths);
  return Object.entries(FIELD_SUPPORT).filter(([path]) => paths.has(path));
}

/** Collects the paths of all fields that differ from their unset value. */
function collect(message: PlainMessage, { fields }: MessageSchema, prefix: string, paths: Set<string>): void {
  for (const field of fields) {
    const path = `${prefix}${field.name}`;
    for (const value of valuesOf(field, message[field.key])) {
      paths.add(path);
      if (isMessage(field.type)) collect(value as PlainMessage, field.type, `${path}.`, paths);
    }
  }
}

function valuesOf({ type, shape, oneof }: FieldSchema, value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (shape === "repeated") return value as readonly unknown[];
  if (shape === "map") return Object.values(value as PlainMessage);
  const isDefault = !isMessage(type) && oneof === undefined && value === zeroOf(type);
  return isDefault ? [] : [value];
}

/** Paths of all fields of the message, followed by the fields of sub-messages: `input.reshape.shape`. */
export function fieldPaths(schema: MessageSchema = modelConfigSchema, prefix = ""): string[] {
  return schema.fields.flatMap(({ name, type }) => {
    const path = `${prefix}${name}`;
    return isMessage(type) ? [path, ...fieldPaths(type, `${path}.`)] : [path];
  });
}

/** The table entry of a field: its own row, or the row of the nearest enclosing message. */
export function supportOf(path: string): FieldSupport | undefined {
  for (let at = path; at !== ""; at = at.slice(0, Math.max(0, at.lastIndexOf(".")))) {
    const support = FIELD_SUPPORT[at];
    if (support !== undefined) return support;
  }
  return undefined;
}

/** Effect of a field. A row applies to all fields of its message that have no row of their own. */
interface FieldSupport {
  readonly honoured?: string;
  readonly noEffect?: string;
  /** Advice for a field that cannot be honoured. Undefined for a configuration in which it is accepted. */
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
  name: honoured("name of the model; it equals the name of its directory"),
  platform: honoured("selects the backend by its old name: `onnxruntime_onnx`, `ensemble`"),
  backend: honoured("the backend that runs the model"),
  runtime: honoured(
    "the program of a backend in the backend directory: `model.py`, `backend.js`; `libtriton_<backend>.so` of a backend " +
      "that the library has is accepted without an effect",
  ),
  version_policy: honoured("the versions to serve; the latest one when absent"),
  max_batch_size: honoured("largest number of rows in a batch; with 0, dims are complete shapes"),
  input: honoured("the inputs"),
  "input.format": noEffect(
    "only the number of dims is checked, which must be 3; the model defines the meaning of each",
  ),
  "input.is_non_linear_format_io": {
    refusedWhen: "always",
    refused: () => "is a format of TensorRT: remove it, and give the model linear tensors",
  },
  output: honoured("the outputs; `label_filename` names classes for classification"),
  "output.is_non_linear_format_io": {
    refusedWhen: "always",
    refused: () => "is a format of TensorRT: remove it, and give the model linear tensors",
  },
  batch_input: honoured("inputs that tell the model where the requests of a batch begin and end"),
  batch_output: honoured("outputs that are split by the shapes of an input"),
  optimization: honoured("hints to the backend"),
  "optimization.graph": honoured("graph optimization level of onnxruntime"),
  "optimization.priority": noEffect(
    "threads of Node have no priorities; a host policy may set the priority of a process",
  ),
  "optimization.cuda": honoured("`graphs` and `graph_spec` in onnxruntime with the provider `cuda`"),
  "optimization.cuda.busy_wait_events": noEffect("ONNX Runtime waits for its stream in its own way"),
  "optimization.cuda.output_copy_stream": noEffect("outputs are copied when the run has ended"),
  "optimization.execution_accelerators": honoured("execution providers of onnxruntime with their options"),
  "optimization.input_pinned_memory": honoured(
    "whether batches for a GPU are gathered in pinned memory, in onnxruntime with CUDA",
  ),
  "optimization.output_pinned_memory": honoured(
    "whether outputs on a GPU are copied to pinned memory first, in onnxruntime with CUDA",
  ),
  "optimization.gather_kernel_buffer_threshold": noEffect(
    "batches are gathered on the CPU, without a kernel",
  ),
  "optimization.eager_batching": noEffect(
    "a batch is gathered when it is complete, without blocking another thread",
  ),
  dynamic_batching: honoured("requests wait in the queue and run together as one batch"),
  sequence_batching: honoured("requests with the same correlation id run on one instance in order"),
  "sequence_batching.state.use_same_buffer_for_input_output": noEffect("states are moved, not copied"),
  "sequence_batching.state.use_growable_memory": noEffect("each state has exactly the memory that it needs"),
  ensemble_scheduling: honoured("the steps of an ensemble and the tensors between them"),
  instance_group: honoured("number of instances, and the devices that they run on"),
  "instance_group.secondary_devices": noEffect(
    "no backend of this library uses accelerators in addition to a GPU",
  ),
  "instance_group.profile": {
    refusedWhen: "always",
    refused: () => "chooses a profile of a TensorRT model: remove it",
  },
  default_model_filename: honoured("name of the model's file in each version directory"),
  cc_model_filenames: noEffect(
    "the file of `default_model_filename` serves GPUs of every compute capability",
  ),
  metric_tags: honoured("labels on the model's metrics"),
  parameters: honoured("options of the backend, and values that the model reads"),
  model_warmup: honoured("requests that run on each instance before it serves"),
  model_operations: {
    noEffect: "only onnxruntime has custom operators",
    refusedWhen: "with backend `onnxruntime`",
    refused: ({ backend, modelOperations }) =>
      backend === "onnxruntime" && (modelOperations?.opLibraryFilename.length ?? 0) > 0
        ? "names libraries of operators, which onnxruntime-node cannot load: export the model with standard operators"
        : undefined,
  },
  model_transaction_policy: honoured("whether a request may have any number of responses"),
  model_repository_agents: honoured(
    "agents that handle the loading and unloading of a model of a repository",
  ),
  response_cache: honoured("whether the response cache answers equal requests"),
  model_metrics: honoured("buckets of the histogram of first-response times"),
};
