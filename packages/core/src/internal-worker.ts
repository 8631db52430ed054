/*
 * `@tritonjs/core/internal/worker`: the part of `@tritonjs/core/internal` that programs of worker threads load. They start
 * faster without the rest.
 */

export { splitOutputs } from "./batch/batch-tensors.js";
export { isGenerator, styleOf } from "./callback/infer-func.js";
export { AutoCompleteConfig, COMPLETION_METHODS, completeBy } from "./config/auto-complete-config.js";
export { sequenceTensors } from "./config/sequence-batching.js";
export { type ModuleOptions, readModule, resolveLibrary } from "./instance/import-callable.js";
export { Log } from "./observe/log.js";
export {
  findInstalled,
  importInstalled,
  importPeer,
  importUnbundled,
  notLoaded,
  requireKoffi,
  unbundledRequire,
} from "./optional-packages.js";
export { sequenceFlags, sequenceOfFlags } from "./request-info.js";
export { realClock } from "./system/clock.js";
export { assertInside, isInside, linkedDirectories, unreadableFile } from "./system/files.js";
export { startBound } from "./system/host-policy.js";
export { startProcess } from "./system/start-process.js";
export { packError } from "./worker/messages.js";
export { guardNativeCalls } from "./worker/native-calls.js";
