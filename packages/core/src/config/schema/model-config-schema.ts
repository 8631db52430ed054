import type {
  ModelConfig,
  ModelDynamicBatching,
  ModelEnsembleStep,
  ModelEnsembling,
  ModelInput,
  ModelInstanceGroup,
  ModelMetricControl,
  ModelOutput,
  ModelQueuePolicy,
  ModelVersionPolicy,
  ModelWarmup,
} from "@tritonjs/protocol";
import {
  batchInputKind,
  batchOutputKind,
  dataType,
  inputFormat,
  instanceKind,
  secondaryDeviceKind,
  timeoutAction,
} from "./enums.js";
import { message, messageOf } from "./field-schema.js";
import { optimization } from "./optimization-schema.js";
import { sequenceBatchingSchema } from "./sequence-batching-schema.js";

/*
 * The whole of model_config.proto as one table, with fields in the order of the proto file. The reader and the writer
 * of config.pbtxt, the JSON form in both directions, the defaults and the table of supported fields all walk it.
 */

const reshape = message("ModelTensorReshape", [["shape", "int64", "repeated"]]);

const modelInput = messageOf<ModelInput>()("ModelInput", [
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

const modelOutput = messageOf<ModelOutput>()("ModelOutput", [
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

const dynamicBatching = messageOf<ModelDynamicBatching>()("ModelDynamicBatching", [
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
const instanceGroup = messageOf<Omit<ModelInstanceGroup, "hosting">>()("ModelInstanceGroup", [
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

/** Triton's `ModelConfig`. */
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
