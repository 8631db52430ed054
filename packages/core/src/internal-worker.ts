/*
 * `@tritonjs/core/internal/worker`: the part of `@tritonjs/core/internal` that programs of worker threads load. They start
 * faster without the rest.
 */

export { splitOutputs } from "./batch/batch-tensors.js";
export { AutoCompleteConfig, COMPLETION_METHODS, completeBy } from "./config/auto-complete-config.js";
export { configText } from "./config/config-json.js";
export { emptyConfig } from "./config/defaults.js";
export { sequenceTensors } from "./config/sequence-batching.js";
export { Log } from "./observe/log.js";
export {
  findInstalled,
  importInstalled,
  importPeer,
  notLoaded,
  requireKoffi,
  unbundledRequire,
} from "./optional-packages.js";
export { sequenceFlags, sequenceOfFlags } from "./request-info.js";
export { realClock } from "./system/clock.js";
export { assertInside, isInside, linkedDirectories, unreadableFile } from "./system/files.js";
export { startBound } from "./system/host-policy.js";
export { startProcess } from "./system/start-process.js";
