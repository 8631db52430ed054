import type { BackendFactory } from "@tritonjs/core/backend";
import { fil } from "./fil-backend.js";

/*
 * `@tritonjs/backends/trees`: tree ensembles, as Triton's FIL backend serves them, without native code.
 */

export type { TreesOptions } from "./forest-backend.js";
export { TreeModel, trees } from "./forest-backend.js";
export type { ModelType } from "./read-forest.js";

/** Backends for models of a repository, by the name in `config.pbtxt`. */
export const repositoryBackends: Readonly<Record<string, BackendFactory>> = { fil };
