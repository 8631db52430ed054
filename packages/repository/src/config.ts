/*
 * `@tritonjs/repository/config`: tools that read, complete, check and write configurations of models. A program that only
 * serves models does not need it.
 */

export {
  type CompleteOptions,
  type ConfigSource,
  completeConfig,
  type FileDescription,
  prepareConfig,
} from "./config/complete-config.js";
export { configFromJson } from "./config/config-from-json.js";
export { fieldNotes, fieldProblems } from "./config/field-support.js";
export { readPrototxt, writePrototxt } from "./config/prototxt.js";
export { isCloudPath } from "./directories/cloud-storage.js";
export { inspectModelFile, modelFileBackend } from "./inspect-model-file.js";
export {
  type Finding,
  type InspectOptions,
  inspectRepository,
  type ModelInspection,
} from "./inspect-repository.js";
