import {
  BATCH_INPUT_KINDS,
  BATCH_OUTPUT_KINDS,
  type DataType,
  type InstanceKind,
  type ModelOptimizationPolicy,
  type ModelQueuePolicy,
  type SequenceControlKind,
} from "@tritonjs/protocol";
import { enumeration } from "./field-schema.js";
import { keyList } from "./key-list.js";

/* The enumerations of model_config.proto. */

type ConfigDataType = "TYPE_INVALID" | "TYPE_STRING" | `TYPE_${Exclude<DataType, "BYTES">}`;

export const dataType = enumeration(
  "DataType",
  keyList<Record<ConfigDataType, unknown>>({
    TYPE_INVALID: true,
    TYPE_BOOL: true,
    TYPE_UINT8: true,
    TYPE_UINT16: true,
    TYPE_UINT32: true,
    TYPE_UINT64: true,
    TYPE_INT8: true,
    TYPE_INT16: true,
    TYPE_INT32: true,
    TYPE_INT64: true,
    TYPE_FP16: true,
    TYPE_FP32: true,
    TYPE_FP64: true,
    TYPE_STRING: true,
    TYPE_BF16: true,
  }),
);

export const inputFormat = enumeration("ModelInput.Format", ["FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"]);

export const batchInputKind = enumeration("BatchInput.Kind", BATCH_INPUT_KINDS);

export const batchOutputKind = enumeration("BatchOutput.Kind", BATCH_OUTPUT_KINDS);

export const instanceKind = enumeration(
  "ModelInstanceGroup.Kind",
  keyList<Record<InstanceKind, unknown>>({
    KIND_AUTO: true,
    KIND_GPU: true,
    KIND_CPU: true,
    KIND_MODEL: true,
  }),
);

export const secondaryDeviceKind = enumeration("ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind", [
  "KIND_NVDLA",
]);

export const modelPriority = enumeration(
  "ModelOptimizationPolicy.ModelPriority",
  keyList<Record<ModelOptimizationPolicy["priority"], unknown>>({
    PRIORITY_DEFAULT: true,
    PRIORITY_MAX: true,
    PRIORITY_MIN: true,
  }),
);

export const timeoutAction = enumeration(
  "ModelQueuePolicy.TimeoutAction",
  keyList<Record<ModelQueuePolicy["timeoutAction"], unknown>>({ REJECT: true, DELAY: true }),
);

export const controlKind = enumeration(
  "ModelSequenceBatching.Control.Kind",
  keyList<Record<SequenceControlKind, unknown>>({
    CONTROL_SEQUENCE_START: true,
    CONTROL_SEQUENCE_READY: true,
    CONTROL_SEQUENCE_END: true,
    CONTROL_SEQUENCE_CORRID: true,
  }),
);
