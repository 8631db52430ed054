import { configDataTypes } from "./data-types.js";
import type {
  InstanceKind,
  ModelConfig,
  ModelDynamicBatching,
  ModelEnsembleStep,
  ModelEnsembling,
  ModelInput,
  ModelInstanceGroup,
  ModelMetricControl,
  ModelOptimizationCuda,
  ModelOptimizationPolicy,
  ModelOutput,
  ModelQueuePolicy,
  ModelSequenceBatching,
  ModelVersionPolicy,
  ModelWarmup,
  SequenceControl,
  SequenceControlKind,
  SequenceStateTensor,
} from "./model-config.js";
import { keyList } from "./option-types.js";
import { BATCH_INPUT_KINDS, BATCH_OUTPUT_KINDS } from "./tensor-spec.js";

/** A scalar type of protobuf. Only the types of the configuration are listed. */
type ScalarType = "string" | "bool" | "int32" | "int64" | "uint32" | "uint64" | "float" | "double";

interface EnumSchema {
  readonly kind: "enum";
  /** Name without the package, such as `ModelInput.Format`. */
  readonly name: string;
  readonly values: Readonly<Record<string, number>>;
}

/** A message: its fields in the order of their definition, which is also the order of the JSON form. */
export interface MessageSchema<T extends object = object> {
  readonly kind: "message";
  /** The type of such a message. The member never has a value. */
  readonly messageType?: T;
  /** Name without the package, such as `ModelVersionPolicy.Latest`. */
  readonly name: string;
  readonly fields: readonly FieldSchema[];
}

export type FieldType = ScalarType | EnumSchema | MessageSchema;

export interface FieldSchema {
  /** Name in config.pbtxt and JSON: `max_batch_size`. */
  readonly name: string;
  /** Name in `ModelConfig`: `maxBatchSize`. */
  readonly key: string;
  /** Type of the value, of an element of a repeated field, or of the values of a map. */
  readonly type: FieldType;
  readonly shape: "one" | "repeated" | "map";
  /** Type of a map's keys. */
  readonly mapKey?: "string" | "uint64";
  /** The oneof of which the field is a member: at most one member is set, and a set one may have any value. */
  readonly oneof?: string;
  /** Absent, rather than 0, when not set: a field that Triton up to release 2.59 does not know or print. */
  readonly hidden?: true;
}

/** A row of the table: name of the field, type, and special properties. */
type FieldRow = readonly [name: string, type: FieldType, special?: Special];
type Special = "repeated" | "map<string>" | "map<uint64>" | "hidden" | { readonly oneof: string };

/** Key of a field in `ModelConfig`, from its name: `maxBatchSize` from `max_batch_size`. */
type KeyOf<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<KeyOf<Rest>>}`
  : Name;

/** Keys that rows have and the type lacks, and vice versa. */
type Mismatch<T, R extends readonly FieldRow[]> =
  | Exclude<KeyOf<R[number][0]>, keyof T>
  | Exclude<keyof T, KeyOf<R[number][0]>>;

export function message<T extends object>(name: string, rows: readonly FieldRow[]): MessageSchema<T> {
  return { kind: "message", name, fields: rows.map(toField) };
}

/**
 * Makes a message of type `T`. The compiler reports rows that `T` lacks, and keys of `T` without a row.
 *
 * @example `messageOf<ModelQueuePolicy>()("ModelQueuePolicy", rows)`
 */
function messageOf<T extends object>() {
  return <const R extends readonly FieldRow[]>(
    name: string,
    rows: R & ([Mismatch<T, R>] extends [never] ? unknown : { readonly mismatch: Mismatch<T, R> }),
  ): MessageSchema<T> => message<T>(name, rows);
}

/** Makes an enumeration from its names. Their numbers count up from 0. */
function enumeration(name: string, names: readonly string[]): EnumSchema {
  return { kind: "enum", name, values: Object.fromEntries(names.map((value, number) => [value, number])) };
}

function toField([name, type, special]: FieldRow): FieldSchema {
  const key = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const field = { name, key, type, shape: "one" as const };
  if (special === undefined) return field;
  if (special === "repeated") return { ...field, shape: "repeated" };
  if (special === "hidden") return { ...field, hidden: true };
  if (special === "map<string>") return { ...field, shape: "map", mapKey: "string" };
  if (special === "map<uint64>") return { ...field, shape: "map", mapKey: "uint64" };
  return { ...field, oneof: special.oneof };
}

/** True for a field that is absent unless it is set: messages and members of a oneof. */
export function hasPresence({ type, shape, oneof, hidden }: FieldSchema): boolean {
  return shape === "one" && (oneof !== undefined || hidden === true || isMessage(type));
}

export function isMessage(type: FieldType): type is MessageSchema {
  return typeof type !== "string" && type.kind === "message";
}

export function isEnum(type: FieldType): type is EnumSchema {
  return typeof type !== "string" && type.kind === "enum";
}

/** Any message as a plain object, by the keys of its fields. */
export type PlainMessage = Record<string, unknown>;

/** The message as a plain object, to read and write its fields by their keys. */
export function fieldsOf(message: object): PlainMessage {
  return message as PlainMessage;
}

/** The value of a field that is not set. Undefined for a field that is then absent. */
function defaultValue(field: FieldSchema): unknown {
  if (field.shape === "repeated") return [];
  if (field.shape === "map") return {};
  if (hasPresence(field) || isMessage(field.type)) return undefined;
  return zeroOf(field.type);
}

export function zeroOf(type: Exclude<FieldType, MessageSchema>): string | number | boolean {
  if (type === "string") return "";
  if (type === "bool") return false;
  if (typeof type === "string") return 0;
  return Object.keys(type.values)[0]!;
}

export function emptyMessage<T extends object>(schema: MessageSchema<T>): T {
  const empty: PlainMessage = {};
  for (const field of schema.fields) {
    const value = defaultValue(field);
    if (value !== undefined) empty[field.key] = value;
  }
  return empty as T;
}

/* The enumerations of model_config.proto. */

const dataType = enumeration("DataType", configDataTypes());

const inputFormat = enumeration("ModelInput.Format", ["FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"]);

export const batchInputKind = enumeration("BatchInput.Kind", BATCH_INPUT_KINDS);

export const batchOutputKind = enumeration("BatchOutput.Kind", BATCH_OUTPUT_KINDS);

const instanceKind = enumeration(
  "ModelInstanceGroup.Kind",
  keyList<Record<InstanceKind, unknown>>({
    KIND_AUTO: true,
    KIND_GPU: true,
    KIND_CPU: true,
    KIND_MODEL: true,
  }),
);

const secondaryDeviceKind = enumeration("ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind", [
  "KIND_NVDLA",
]);

const modelPriority = enumeration(
  "ModelOptimizationPolicy.ModelPriority",
  keyList<Record<ModelOptimizationPolicy["priority"], unknown>>({
    PRIORITY_DEFAULT: true,
    PRIORITY_MAX: true,
    PRIORITY_MIN: true,
  }),
);

const timeoutAction = enumeration(
  "ModelQueuePolicy.TimeoutAction",
  keyList<Record<ModelQueuePolicy["timeoutAction"], unknown>>({ REJECT: true, DELAY: true }),
);

const controlKind = enumeration(
  "ModelSequenceBatching.Control.Kind",
  keyList<Record<SequenceControlKind, unknown>>({
    CONTROL_SEQUENCE_START: true,
    CONTROL_SEQUENCE_READY: true,
    CONTROL_SEQUENCE_END: true,
    CONTROL_SEQUENCE_CORRID: true,
  }),
);

const graphShape = message("ModelOptimizationPolicy.Cuda.GraphSpec.Shape", [["dim", "int64", "repeated"]]);
const graphSpec = messageOf<ModelOptimizationCuda["graphSpec"][number]>()(
  "ModelOptimizationPolicy.Cuda.GraphSpec",
  [
    ["batch_size", "int32"],
    ["input", graphShape, "map<string>"],
    [
      "graph_lower_bound",
      message("ModelOptimizationPolicy.Cuda.GraphSpec.LowerBound", [
        ["batch_size", "int32"],
        ["input", graphShape, "map<string>"],
      ]),
    ],
  ],
);
const accelerator = message("ModelOptimizationPolicy.ExecutionAccelerators.Accelerator", [
  ["name", "string"],
  ["parameters", "string", "map<string>"],
]);
const pinnedMemory = message("ModelOptimizationPolicy.PinnedMemoryBuffer", [["enable", "bool"]]);
export const optimization = messageOf<ModelOptimizationPolicy>()("ModelOptimizationPolicy", [
  ["graph", message("ModelOptimizationPolicy.Graph", [["level", "int32"]])],
  ["priority", modelPriority],
  [
    "cuda",
    messageOf<ModelOptimizationCuda>()("ModelOptimizationPolicy.Cuda", [
      ["graphs", "bool"],
      ["busy_wait_events", "bool"],
      ["graph_spec", graphSpec, "repeated"],
      ["output_copy_stream", "bool"],
    ]),
  ],
  [
    "execution_accelerators",
    messageOf<NonNullable<ModelOptimizationPolicy["executionAccelerators"]>>()(
      "ModelOptimizationPolicy.ExecutionAccelerators",
      [
        ["gpu_execution_accelerator", accelerator, "repeated"],
        ["cpu_execution_accelerator", accelerator, "repeated"],
      ],
    ),
  ],
  ["input_pinned_memory", pinnedMemory],
  ["output_pinned_memory", pinnedMemory],
  ["gather_kernel_buffer_threshold", "uint32"],
  ["eager_batching", "bool"],
]);

const control = messageOf<SequenceControl>()("ModelSequenceBatching.Control", [
  ["kind", controlKind],
  ["int32_false_true", "int32", "repeated"],
  ["fp32_false_true", "float", "repeated"],
  ["bool_false_true", "bool", "repeated"],
  ["data_type", dataType],
]);
const stateData = { oneof: "state_data" } as const;
const initialState = messageOf<SequenceStateTensor["initialState"][number]>()(
  "ModelSequenceBatching.InitialState",
  [
    ["data_type", dataType],
    ["dims", "int64", "repeated"],
    ["zero_data", "bool", stateData],
    ["data_file", "string", stateData],
    ["name", "string"],
  ],
);
const state = messageOf<SequenceStateTensor>()("ModelSequenceBatching.State", [
  ["input_name", "string"],
  ["output_name", "string"],
  ["data_type", dataType],
  ["dims", "int64", "repeated"],
  ["initial_state", initialState, "repeated"],
  ["use_same_buffer_for_input_output", "bool"],
  ["use_growable_memory", "bool"],
]);
const strategyChoice = { oneof: "strategy_choice" } as const;
const sequenceBatchingSchema = messageOf<ModelSequenceBatching>()("ModelSequenceBatching", [
  [
    "direct",
    messageOf<NonNullable<ModelSequenceBatching["direct"]>>()("ModelSequenceBatching.StrategyDirect", [
      ["max_queue_delay_microseconds", "uint64"],
      ["minimum_slot_utilization", "float"],
    ]),
    strategyChoice,
  ],
  [
    "oldest",
    messageOf<NonNullable<ModelSequenceBatching["oldest"]>>()("ModelSequenceBatching.StrategyOldest", [
      ["max_candidate_sequences", "int32"],
      ["preferred_batch_size", "int32", "repeated"],
      ["max_queue_delay_microseconds", "uint64"],
      ["preserve_ordering", "bool"],
    ]),
    strategyChoice,
  ],
  ["max_sequence_idle_microseconds", "uint64"],
  [
    "control_input",
    messageOf<ModelSequenceBatching["controlInput"][number]>()("ModelSequenceBatching.ControlInput", [
      ["name", "string"],
      ["control", control, "repeated"],
    ]),
    "repeated",
  ],
  ["state", state, "repeated"],
  ["iterative_sequence", "bool"],
]);

/*
 * The whole of model_config.proto as one table, with fields in the order of the proto file. The reader and the writer
 * of config.pbtxt, the JSON form in both directions, the defaults and the table of supported fields all walk it.
 */

const reshape = message("ModelTensorReshape", [["shape", "int64", "repeated"]]);

export const modelInput = messageOf<ModelInput>()("ModelInput", [
  ["name", "string"],
  ["data_type", dataType],
  ["format", inputFormat],
  ["dims", "int64", "repeated"],
  ["reshape", reshape],
  ["is_shape_tensor", "bool"],
  ["allow_ragged_batch", "bool"],
  ["optional", "bool"],
  ["is_non_linear_format_io", "bool"],
]);

export const modelOutput = messageOf<ModelOutput>()("ModelOutput", [
  ["name", "string"],
  ["data_type", dataType],
  ["dims", "int64", "repeated"],
  ["reshape", reshape],
  ["label_filename", "string"],
  ["is_shape_tensor", "bool"],
  ["is_non_linear_format_io", "bool"],
]);

const batchInput = messageOf<ModelConfig["batchInput"][number]>()("BatchInput", [
  ["kind", batchInputKind],
  ["target_name", "string", "repeated"],
  ["data_type", dataType],
  ["source_input", "string", "repeated"],
]);

const batchOutput = messageOf<ModelConfig["batchOutput"][number]>()("BatchOutput", [
  ["target_name", "string", "repeated"],
  ["kind", batchOutputKind],
  ["source_input", "string", "repeated"],
]);

const policyChoice = { oneof: "policy_choice" } as const;
const versionPolicy = messageOf<ModelVersionPolicy>()("ModelVersionPolicy", [
  ["latest", message("ModelVersionPolicy.Latest", [["num_versions", "uint32"]]), policyChoice],
  ["all", message("ModelVersionPolicy.All", []), policyChoice],
  ["specific", message("ModelVersionPolicy.Specific", [["versions", "int64", "repeated"]]), policyChoice],
]);

const queuePolicy = messageOf<ModelQueuePolicy>()("ModelQueuePolicy", [
  ["timeout_action", timeoutAction],
  ["default_timeout_microseconds", "uint64"],
  ["allow_timeout_override", "bool"],
  ["max_queue_size", "uint32"],
]);

export const dynamicBatching = messageOf<ModelDynamicBatching>()("ModelDynamicBatching", [
  ["preferred_batch_size", "int32", "repeated"],
  ["max_queue_delay_microseconds", "uint64"],
  ["preserve_ordering", "bool"],
  ["priority_levels", "uint64"],
  ["default_priority_level", "uint64"],
  ["default_queue_policy", queuePolicy],
  ["priority_queue_policy", queuePolicy, "map<uint64>"],
]);

const ensembling = messageOf<ModelEnsembling>()("ModelEnsembling", [
  [
    "step",
    messageOf<ModelEnsembleStep>()("ModelEnsembling.Step", [
      ["model_name", "string"],
      ["model_version", "int64"],
      ["input_map", "string", "map<string>"],
      ["output_map", "string", "map<string>"],
      ["model_namespace", "string"],
    ]),
    "repeated",
  ],
  ["max_inflight_requests", "uint32", "hidden"],
]);

const resource = message("ModelRateLimiter.Resource", [
  ["name", "string"],
  ["global", "bool"],
  ["count", "uint32"],
]);
export const instanceGroup = messageOf<Omit<ModelInstanceGroup, "hosting">>()("ModelInstanceGroup", [
  ["name", "string"],
  ["kind", instanceKind],
  ["count", "int32"],
  [
    "rate_limiter",
    messageOf<NonNullable<ModelInstanceGroup["rateLimiter"]>>()("ModelRateLimiter", [
      ["resources", resource, "repeated"],
      ["priority", "uint32"],
    ]),
  ],
  ["gpus", "int32", "repeated"],
  [
    "secondary_devices",
    message("ModelInstanceGroup.SecondaryDevice", [
      ["kind", secondaryDeviceKind],
      ["device_id", "int64"],
    ]),
    "repeated",
  ],
  ["profile", "string", "repeated"],
  ["passive", "bool"],
  ["host_policy", "string"],
]);

const inputDataType = { oneof: "input_data_type" } as const;
const warmup = messageOf<ModelWarmup>()("ModelWarmup", [
  ["name", "string"],
  ["batch_size", "uint32"],
  [
    "inputs",
    messageOf<Omit<ModelWarmup["inputs"][string], "inputData">>()("ModelWarmup.Input", [
      ["data_type", dataType],
      ["dims", "int64", "repeated"],
      ["zero_data", "bool", inputDataType],
      ["random_data", "bool", inputDataType],
      ["input_data_file", "string", inputDataType],
    ]),
    "map<string>",
  ],
  ["count", "uint32"],
]);

const agent = message("ModelRepositoryAgents.Agent", [
  ["name", "string"],
  ["parameters", "string", "map<string>"],
]);

const metricControl = messageOf<ModelMetricControl>()("ModelMetrics.MetricControl", [
  ["metric_identifier", message("ModelMetrics.MetricControl.MetricIdentifier", [["family", "string"]])],
  [
    "histogram_options",
    message("ModelMetrics.MetricControl.HistogramOptions", [["buckets", "double", "repeated"]]),
    { oneof: "metric_options" },
  ],
]);

const schedulingChoice = { oneof: "scheduling_choice" } as const;

export const modelConfigSchema = messageOf<ModelConfig>()("ModelConfig", [
  ["name", "string"],
  ["platform", "string"],
  ["backend", "string"],
  ["runtime", "string"],
  ["version_policy", versionPolicy],
  ["max_batch_size", "int32"],
  ["input", modelInput, "repeated"],
  ["output", modelOutput, "repeated"],
  ["batch_input", batchInput, "repeated"],
  ["batch_output", batchOutput, "repeated"],
  ["optimization", optimization],
  ["dynamic_batching", dynamicBatching, schedulingChoice],
  ["sequence_batching", sequenceBatchingSchema, schedulingChoice],
  ["ensemble_scheduling", ensembling, schedulingChoice],
  ["instance_group", instanceGroup, "repeated"],
  ["default_model_filename", "string"],
  ["cc_model_filenames", "string", "map<string>"],
  ["metric_tags", "string", "map<string>"],
  ["parameters", message("ModelParameter", [["string_value", "string"]]), "map<string>"],
  ["model_warmup", warmup, "repeated"],
  ["model_operations", message("ModelOperations", [["op_library_filename", "string", "repeated"]])],
  ["model_transaction_policy", message("ModelTransactionPolicy", [["decoupled", "bool"]])],
  ["model_repository_agents", message("ModelRepositoryAgents", [["agents", agent, "repeated"]])],
  ["response_cache", message("ModelResponseCache", [["enable", "bool"]])],
  ["model_metrics", message("ModelMetrics", [["metric_control", metricControl, "repeated"]])],
]);
