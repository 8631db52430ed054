import { enumeration } from "./field-schema.js";

/* The enumerations of model_config.proto. */

export const dataType = enumeration("DataType", [
  "TYPE_INVALID",
  "TYPE_BOOL",
  "TYPE_UINT8",
  "TYPE_UINT16",
  "TYPE_UINT32",
  "TYPE_UINT64",
  "TYPE_INT8",
  "TYPE_INT16",
  "TYPE_INT32",
  "TYPE_INT64",
  "TYPE_FP16",
  "TYPE_FP32",
  "TYPE_FP64",
  "TYPE_STRING",
  "TYPE_BF16",
]);

export const inputFormat = enumeration("ModelInput.Format", ["FORMAT_NONE", "FORMAT_NHWC", "FORMAT_NCHW"]);

export const batchInputKind = enumeration("BatchInput.Kind", [
  "BATCH_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT",
  "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
  "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
  "BATCH_ITEM_SHAPE",
  "BATCH_ITEM_SHAPE_FLATTEN",
]);

export const batchOutputKind = enumeration("BatchOutput.Kind", ["BATCH_SCATTER_WITH_INPUT_SHAPE"]);

export const instanceKind = enumeration("ModelInstanceGroup.Kind", [
  "KIND_AUTO",
  "KIND_GPU",
  "KIND_CPU",
  "KIND_MODEL",
]);

export const secondaryDeviceKind = enumeration("ModelInstanceGroup.SecondaryDevice.SecondaryDeviceKind", [
  "KIND_NVDLA",
]);

export const modelPriority = enumeration("ModelOptimizationPolicy.ModelPriority", [
  "PRIORITY_DEFAULT",
  "PRIORITY_MAX",
  "PRIORITY_MIN",
]);

export const timeoutAction = enumeration("ModelQueuePolicy.TimeoutAction", ["REJECT", "DELAY"]);

export const controlKind = enumeration("ModelSequenceBatching.Control.Kind", [
  "CONTROL_SEQUENCE_START",
  "CONTROL_SEQUENCE_READY",
  "CONTROL_SEQUENCE_END",
  "CONTROL_SEQUENCE_CORRID",
]);
