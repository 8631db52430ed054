import type { BackendFactory } from "@tritonjs/core/backend";
import type { ModelControlMode } from "@tritonjs/core/extension";
import { errorFor, type ModelConfig, optionTypes } from "@tritonjs/protocol";
import type { Substitute } from "./config/substitutes.js";

/** Settings of backends by the name of the backend. The empty name is for all backends. */
export type BackendConfig = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Options of the model repository, named after tritonserver's flags. */
export interface RepositoryOptions {
  /**
   * Models in Triton's layout: directories, and paths in clouds as Triton writes them (`s3://bucket/models`,
   * `gs://bucket/models`, `as://account/container/models`), which need the vendor's package. @default none
   */
  readonly modelRepository?: string | readonly string[];
  /**
   * `none` loads all models at the start. `poll` also follows changes of their directories. `explicit` loads only the
   * models of `loadModel` at the start, and others on `loadModel()` or a client's request.
   * @default "none"
   */
  readonly modelControlMode?: ModelControlMode;
  /**
   * Interval of `poll`, in seconds. Storage in a cloud is polled after 80 to 100 percent of it, so that replicas do not
   * poll together. @default 15
   */
  readonly repositoryPollSecs?: number;
  /** Models that `explicit` loads at the start; `["*"]` for all. @default none */
  readonly loadModel?: readonly string[];
  /** Reads `configs/<name>.pbtxt` of a model instead of its `config.pbtxt`, if that file exists. */
  readonly modelConfigName?: string;
  /** Leaves configurations as written. They are not completed from model files. @default false */
  readonly disableAutoCompleteConfig?: boolean;
  /** Versions that load at the same time. @default 4 */
  readonly modelLoadThreadCount?: number;
  /** Number of retries for a version that fails to load. @default 0 */
  readonly modelLoadRetryCount?: number;
  /** Allows models of several repositories to have the same name. @default false */
  readonly modelNamespacing?: boolean;
  /** Whether `serve()` rejects when a model of the repository fails to load at the start. @default true */
  readonly exitOnError?: boolean;
  /** Settings of backends: `{ onnxruntime: { ... }, "": { "default-max-batch-size": "4" } }`. */
  readonly backendConfig?: BackendConfig;
  /**
   * Directory of backends that models share, in Triton's layout: `<backend>/model.py` with a class `TritonPythonModel`,
   * or `<backend>/backend.js`. `backend` of a configuration names one of them. @default none
   */
  readonly backendDirectory?: string;
  /** Other layouts of a model's directory than Triton's, such as MLServer's. @default none */
  readonly modelFormats?: readonly ModelFormat[];
  /** Other files and backends for models that cannot run here. @default none */
  readonly substitutes?: readonly Substitute[];
  /** Your own backends, by their names in configurations. */
  readonly backends?: Readonly<Record<string, BackendFactory>>;
  /**
   * Whether clients may send the files of a model with a load request (parameters `file:<path>`), and a configuration
   * whose parameters name paths outside of the repository. Both can be code that the server runs, so enable it only for
   * clients that may run code here. Loads by the program itself may always have them. @default false
   */
  readonly allowModelFileOverride?: boolean;
  /** Your own repository agents, by their names in configurations. `checksum` is built in. */
  readonly repositoryAgents?: Readonly<Record<string, RepositoryAgent>>;
  /**
   * Directory of agents that are programs: `<name>/agent.js` exports functions named after the actions, and so does
   * `<name>/agent.py`, which runs in a process of its own. @default none
   */
  readonly repositoryAgentDirectory?: string;
  /** How long an agent may take for one action, in seconds. A slower one fails. @default 300 */
  readonly repositoryAgentTimeoutSecs?: number;
}

export const REPOSITORY_OPTION_TYPES = optionTypes<RepositoryOptions>({
  modelRepository: ["array", "string"],
  modelControlMode: "string",
  repositoryPollSecs: "number",
  loadModel: "array",
  modelConfigName: "string",
  disableAutoCompleteConfig: "boolean",
  modelLoadThreadCount: "number",
  modelLoadRetryCount: "number",
  modelNamespacing: "boolean",
  exitOnError: "boolean",
  backendConfig: "object",
  backendDirectory: "string",
  modelFormats: "array",
  substitutes: "any",
  backends: "object",
  allowModelFileOverride: "boolean",
  repositoryAgents: "object",
  repositoryAgentDirectory: "string",
  repositoryAgentTimeoutSecs: "number",
});

/**
 * Another layout of a model's directory than Triton's. It is for directories with its file and without a `config.pbtxt`.
 * `modelSettings` of `@tritonjs/backends/classes` reads MLServer's.
 */
export interface ModelFormat {
  /** File by which a directory of the format is known: `model-settings.json`. */
  readonly file: string;
  /**
   * Lays out a model as Triton has it, in another directory.
   *
   * @returns that directory, and the configuration in Triton's JSON
   * @throws TritonError for a model that cannot be served; the text becomes the reason
   */
  layOut(model: {
    readonly modelName: string;
    readonly directory: string;
  }): Promise<{ readonly directory: string; readonly config: object }>;
  /** Removes what it has laid out, when the models of a server have ended. */
  close?(): Promise<void>;
}

/** Names of the models to load at the start; undefined for all of them. */
export function startupModels({
  modelControlMode,
  loadModel = [],
}: RepositoryOptions): readonly string[] | undefined {
  if (modelControlMode !== "explicit") return undefined;
  if (!loadModel.includes("*")) return loadModel;
  if (loadModel.length === 1) return undefined;
  throw errorFor(
    "INVALID_OPTION",
    "Wildcard model name '*' must be the ONLY startup model if specified at all.",
  );
}

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
  /** Makes an empty directory to load from instead, until the model has unloaded. For the action LOAD only. */
  replaceLocation(): Promise<string>;
  /** Aborted when the time for the action is over. */
  readonly signal: AbortSignal;
}

/**
 * Handles events of models whose configuration names it in `model_repository_agents`. An error that it throws at LOAD
 * prevents the load and becomes its reason. Errors at later events are logged.
 *
 * A path that it returns at LOAD is the directory to load from instead. The agent keeps such a directory; that of
 * `replaceLocation` is deleted after the model has unloaded.
 *
 * @example
 * ```ts
 * const announce: RepositoryAgent = (action, { modelName }) => bus.emit("model", { action, modelName });
 * new Triton({ extensions: [repository({ modelRepository: "./models", repositoryAgents: { announce } })] });
 * ```
 */
export type RepositoryAgent = (
  action: RepositoryAgentAction,
  model: RepositoryAgentModel,
) => string | undefined | void | Promise<string | undefined> | Promise<void>;
