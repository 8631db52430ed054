/*
 * `@tritonjs/trees`: tree ensembles, as Triton's FIL backend serves them, without native code.
 */
import type { BackendFactory } from "@tritonjs/core/backend";
import { fil } from "./backend/repository-model.js";

export type { TreesOptions } from "./backend/options.js";
export { TreeModel } from "./backend/tree-model.js";
export { trees } from "./backend/trees.js";
export type { ModelType } from "./readers/model-type.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = { fil };
