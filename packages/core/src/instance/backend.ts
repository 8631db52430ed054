import type {
  DescribedTensor,
  InstanceHosting,
  Isolation,
  ModelConfig,
  TensorSpec,
} from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { InstanceInfo } from "../callable/infer-context.js";
import type { Clock } from "../clock/clock.js";
import type { AutoCompleteConfig } from "../config/complete/auto-complete-config.js";
import type { InstancePlacement } from "../config/placement/instances.js";

import type { Log } from "../observe/log/log.js";
import type { OutputChecker } from "../response/check-outputs.js";
import type { Executor } from "./executor.js";

/** Description of a model that a backend read from the model's file. */
export interface ModelDescription {
  /** Tensors with all their dimensions as the file declares them, including the batch axis. */
  readonly inputs: readonly DescribedTensor[];
  readonly outputs: readonly DescribedTensor[];
  /**
   * Largest number of rows of a batch, 0 for a model without a batch axis; undefined if the model does not declare it.
   */
  readonly maxBatchSize?: number;
  /** True if requests get any number of responses; undefined if the model does not declare it. */
  readonly decoupled?: boolean;
  /** True if the tensors are as in a configuration: without the batch axis, and perhaps incomplete. */
  readonly asInConfig?: boolean;
}

/** Loads and unloads models of the repository, for servers whose models are loaded explicitly. */
export interface ModelControl {
  /**
   * @param given a configuration in JSON, and files by path, which replace those in the repository
   * @throws TritonError like `Triton.loadModel`
   */
  load(
    name: string,
    given: {
      readonly config?: string | undefined;
      readonly files?: ReadonlyMap<string, Uint8Array> | undefined;
    },
  ): Promise<void>;
  /** @throws TritonError like `Triton.unloadModel` */
  unload(name: string, given: { readonly unloadDependents?: boolean | undefined }): Promise<void>;
  /** True if a model is in service and reports that it can be used. @param version empty for the latest */
  isReady(name: string, version: string): Promise<boolean>;
}

/** Everything that an executor is created from. */
export interface ExecutorContext {
  readonly placement: InstancePlacement;
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  /** Total number of instances of the model. */
  readonly instanceCount: number;
  /** Settings of the instance's group beyond Triton's own fields. */
  readonly hosting: InstanceHosting;
  /** Priority of a process, from the host policy. */
  readonly nice?: number | undefined;
  /** Number of requests of the model that wait in its queue. */
  readonly queuedRequests: () => number;
  /** The server's log. */
  readonly log: Log;
  /** Registry of further metrics besides those of the library: `triton.metrics`. */
  readonly metrics: () => Registry;
  /** The models of the repository; undefined for an executor that is not part of a server. */
  readonly control?: ModelControl | undefined;
}

/**
 * Runs models of one kind. `onnxruntime({ model })` creates a backend for `bind`. For a model of a repository, the
 * {@link BackendFactory} of its `backend` creates it.
 *
 * A version of a repository calls its backend in this order: `checkConfig`, `completeConfig`, `open` or `describe`,
 * then `createExecutor` for each instance. If any of them throws, the version is not loaded, and the error is the
 * reason.
 */
export interface Backend {
  /** Triton's name of the backend: `onnxruntime`. */
  readonly backendName: string;
  /** Triton's platform string: `onnxruntime_onnx`. */
  readonly platform: string;
  /**
   * Reads the model's own description, which completes a configuration; undefined if the files contain none.
   * @throws TritonError for a missing or broken file.
   */
  describe(): ModelDescription | undefined;
  /**
   * Opens the model of a repository where its first instance will run, and describes it, including properties that only
   * an open model has. Called instead of `describe`. The executor of the first instance takes over the open model.
   *
   * @param config configuration with complete instance groups, but perhaps incomplete tensors
   */
  open?(config: ModelConfig): Promise<ModelDescription>;
  /** Closes an open model that no instance took over. */
  close?(): Promise<void>;
  /** Throws for configurations of a repository that the backend cannot serve. */
  checkConfig?(config: ModelConfig): void;
  /** Completes a configuration of a repository in the backend's own way, instead of from `describe`. */
  completeConfig?(config: AutoCompleteConfig): void | Promise<void>;
  /**
   * Where it can run instances, its default first. A backend with this list reads `hosting.isolation`.
   * @default chosen by the backend, and groups cannot choose
   */
  readonly isolations?: readonly Isolation[];
  /**
   * True if its executors can end a running batch, so that execution time limits also work outside of a process.
   * @default false
   */
  readonly endsBatches?: boolean;
  /** Creates the executor of one instance. */
  createExecutor(context: ExecutorContext): Executor;
}

declare const tensorTypes: unique symbol;

/**
 * A backend whose inputs `I` and outputs `O` the compiler knows. `bind` types the handle by them, so the program writes
 * no specifications. At run time it is a {@link Backend} that describes its tensors.
 */
export interface TypedBackend<I extends readonly TensorSpec[], O extends readonly TensorSpec[]>
  extends Backend {
  /** For type inference only; never set. */
  readonly [tensorTypes]?: { readonly inputs: I; readonly outputs: O };
}

/** A version of a model in a repository: the argument of its backend's factory. */
export interface ModelSource {
  readonly name: string;
  readonly version: number;
  /** Directory of the model. */
  readonly directory: string;
  /** Directory of the version. */
  readonly versionDirectory: string;
  /** The configuration, as known before the model's file is read. */
  readonly config: ModelConfig;
  /** True if the model may complete its configuration. */
  readonly autoComplete: boolean;
  /** Settings of the backend: `backendConfig` of the server. */
  readonly settings: Readonly<Record<string, string>>;
  /** Writes a warning to the server's log. */
  warn(this: void, message: string): void;
}

/**
 * Creates the backend of one version of a model. If it throws, the version is not loaded, and the error is the reason.
 *
 * @example
 * ```ts
 * const shout: BackendFactory = ({ versionDirectory }) => ({
 *   backendName: "shout",
 *   platform: "",
 *   describe: () => undefined,
 *   createExecutor: (context) => new ShoutExecutor(versionDirectory, context),
 * });
 * new Triton({ modelRepository: "./models", backends: { shout } });
 * ```
 */
export type BackendFactory = (source: ModelSource) => Backend | Promise<Backend>;

/** True for a backend, as opposed to a function or a URL. */
export function isBackend(value: unknown): value is Backend {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as Partial<Backend>).createExecutor === "function"
  );
}
