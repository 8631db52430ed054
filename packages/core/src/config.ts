/*
 * `@tritonjs/core/config`: tools that read, complete, check and write model configurations. A program that only serves
 * models does not need it.
 */

export { inspectModelFile } from "./bind/inspect-model-file.js";
export { AutoCompleteConfig, type AutoCompleteTensor } from "./config/auto-complete-config.js";
export type { FileDescription } from "./config/complete-config.js";
export {
  type CompleteOptions,
  type ConfigSource,
  completeConfig,
  prepareConfig,
} from "./config/complete-config.js";
export { configFromJson, toConfigJson } from "./config/config-json.js";
export { fieldNotes, fieldProblems } from "./config/field-support.js";
export { modelTypes } from "./config/model-metadata.js";
export { readPrototxt, writePrototxt } from "./config/prototxt.js";
export { type InitialStates, initialStates } from "./config/sequence-batching.js";
export { isCloudPath } from "./repository/cloud-storage.js";
export {
  type Finding,
  type InspectOptions,
  inspectRepository,
  type ModelInspection,
} from "./repository/inspect-repository.js";
