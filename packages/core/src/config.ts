/*
 * `@tritonjs/core/config`: tools that read, complete, check and write model configurations. A program that only serves
 * models does not need it.
 */

export { inspectModelFile } from "./binding/inspect-model-file.js";
export { AutoCompleteConfig, type AutoCompleteTensor } from "./config/complete/auto-complete-config.js";
export { type CompleteOptions, completeConfig } from "./config/complete/complete-config.js";
export type { FileDescription } from "./config/complete/onnx.js";
export { type ConfigSource, prepareConfig } from "./config/complete/prepare-config.js";
export { type InitialStates, initialStates } from "./config/options/initial-states.js";
export { readPrototxt } from "./config/prototxt/read-prototxt.js";
export { writePrototxt } from "./config/prototxt/write-prototxt.js";
export { configFromJson } from "./config/schema/config-from-json.js";
export { toConfigJson } from "./config/schema/config-json.js";
export { fieldNotes, fieldProblems } from "./config/schema/field-support.js";
export { modelTypes } from "./config/schema/model-types.js";
export { isCloudPath } from "./repository/cloud/cloud-path.js";
export {
  type Finding,
  type InspectOptions,
  inspectRepository,
  type ModelInspection,
} from "./repository/inspect/inspect-repository.js";
