import type { ModelConfig } from "@tritonjs/protocol";

/** Events of a model: it is about to load; it has loaded, or failed to load; it is about to unload; it has unloaded. */
export type RepositoryAgentAction = "LOAD" | "LOAD_COMPLETE" | "LOAD_FAIL" | "UNLOAD" | "UNLOAD_COMPLETE";

/** A model as a repository agent sees it. */
export interface RepositoryAgentModel {
  readonly modelName: string;
  /** Directory of the model: in its repository, or the replacement that the previous agent made. */
  readonly location: string;
  /** The configuration as written in that directory. */
  readonly config: ModelConfig;
  /** Parameters of the agent from the configuration. */
  readonly parameters: Readonly<Record<string, string>>;
  /**
   * Makes an empty directory, from which the model is loaded instead. The directory is removed when the model has
   * unloaded. Only for the action LOAD.
   */
  replaceLocation(): Promise<string>;
}

/**
 * Handles events of models whose configuration names it in `model_repository_agents`. An error that it throws at LOAD
 * prevents the load and becomes its reason. Errors at later events are logged.
 *
 * @example
 * ```ts
 * const announce: RepositoryAgent = (action, { modelName }) => bus.emit("model", { action, modelName });
 * new Triton({ modelRepository: "./models", repositoryAgents: { announce } });
 * ```
 */
export type RepositoryAgent = (
  action: RepositoryAgentAction,
  model: RepositoryAgentModel,
) => void | Promise<void>;
