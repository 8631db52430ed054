/*
 * `@tritonjs/repository`: directories of models for `new Triton({ extensions: [repository({ ... })] })`.
 */

export { readSubstitutes, type Substitute } from "./config/substitutes.js";
export { repository } from "./repository.js";
export type {
  BackendConfig,
  ModelFormat,
  RepositoryAgent,
  RepositoryAgentAction,
  RepositoryAgentModel,
  RepositoryOptions,
} from "./repository-options.js";
