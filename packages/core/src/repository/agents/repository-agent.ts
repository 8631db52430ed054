import type { ModelConfig } from "@tritonjs/protocol";

/**
 * What happens to a model: it is about to be loaded; it is loaded, or could not be; it is about to be unloaded; it is
 * gone.
 */
export type RepositoryAgentAction = "LOAD" | "LOAD_COMPLETE" | "LOAD_FAIL" | "UNLOAD" | "UNLOAD_COMPLETE";

/** A model as a repository agent sees it. */
export interface RepositoryAgentModel {
  readonly modelName: string;
  /** Directory of the model: in its repository, or where the agent before this one has put it. */
  readonly location: string;
  /** What is written there as its configuration. */
  readonly config: ModelConfig;
  /** Parameters of the agent, as the configuration names them. */
  readonly parameters: Readonly<Record<string, string>>;
  /**
   * Makes an empty directory, from which the model is loaded instead; it is removed when the model is gone. For the
   * action LOAD alone.
   */
  replaceLocation(): Promise<string>;
}

/**
 * Looks after models of a repository whose configuration names it in `model_repository_agents`. What it throws at LOAD
 * is the reason why the model is not loaded; later it is written to the log.
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
