import type { DescribedTensor, InstanceHosting, Isolation, ModelConfig } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { InstanceInfo } from "../callable/infer-context.js";
import type { Clock } from "../clock/clock.js";
import type { AutoCompleteConfig } from "../config/complete/auto-complete-config.js";
import type { InstancePlacement } from "../config/placement/instances.js";

import type { Log } from "../observe/log/log.js";
import type { OutputChecker } from "../response/check-outputs.js";
import type { Executor } from "./executor.js";

/** What a backend found out about a model by reading its file. */
export interface ModelDescription {
  /** Tensors with all their dimensions, the batch axis included, as the file declares them. */
  readonly inputs: readonly DescribedTensor[];
  readonly outputs: readonly DescribedTensor[];
  /** Most rows of a batch, 0 for a model without a batch axis; undefined where the model does not say. */
  readonly maxBatchSize?: number;
  /** Whether requests get any number of responses; undefined where the model does not say. */
  readonly decoupled?: boolean;
  /** True for tensors as in a configuration: without the batch axis, and perhaps not all of them. */
  readonly asInConfig?: boolean;
}

/** Brings models of the repository into service and takes them out of it, where models are loaded explicitly. */
export interface ModelControl {
  /**
   * @param given a configuration in JSON, and files by their paths, to be used instead of those in the repository
   * @throws TritonError as `Triton.loadModel`
   */
  load(
    name: string,
    given: {
      readonly config?: string | undefined;
      readonly files?: ReadonlyMap<string, Uint8Array> | undefined;
    },
  ): Promise<void>;
  /** @throws TritonError as `Triton.unloadModel` */
  unload(name: string, given: { readonly unloadDependents?: boolean | undefined }): Promise<void>;
  /** Whether a model is in service and says itself that it can be used. @param version empty for the latest */
  isReady(name: string, version: string): Promise<boolean>;
}

/** What an executor is made with. */
export interface ExecutorContext {
  readonly placement: InstancePlacement;
  readonly info: InstanceInfo;
  readonly checker: OutputChecker;
  readonly clock: Clock;
  /** Instances of the model altogether. */
  readonly instanceCount: number;
  /** What the group of the instance asks for beyond Triton's own fields. */
  readonly hosting: InstanceHosting;
  /** Priority of a process, by the host policy. */
  readonly nice?: number | undefined;
  /** The server's log. */
  readonly log: Log;
  /** Metrics beside those of the library: `triton.metrics`. */
  readonly metrics: () => Registry;
  /** The models of the repository; undefined for an executor that is not part of a server. */
  readonly control?: ModelControl | undefined;
}

/**
 * A way to run models of one kind. `onnxruntime({ model })` makes one for `bind`; for a model of a repository, the
 * {@link BackendFactory} of its `backend` does.
 *
 * A version of a repository goes through its backend in this order: `checkConfig`, `completeConfig`, `open` or
 * `describe`, then `createExecutor` for each instance. What any of them throws is the reason why the version is not loaded.
 */
export interface Backend {
  /** Triton's name of the backend: `onnxruntime`. */
  readonly backendName: string;
  /** Triton's platform string: `onnxruntime_onnx`. */
  readonly platform: string;
  /**
   * Reads the model's own description, with which a configuration is completed; undefined when the files say nothing.
   * Throws `TritonError` for a missing or broken file.
   */
  describe(): ModelDescription | undefined;
  /**
   * Opens the model of a repository where its first instance will run, and describes it with what only the open model
   * shows; called instead of `describe`. The executor of the first instance takes over what is open.
   *
   * @param config the instance groups are complete, the tensors perhaps not
   */
  open?(config: ModelConfig): Promise<ModelDescription>;
  /** Closes what `open` has opened and no instance took over. */
  close?(): Promise<void>;
  /** Refuses, by throwing, configurations of a repository that the backend cannot serve. */
  checkConfig?(config: ModelConfig): void;
  /** Completes a configuration of a repository in a way of its own, instead of from `describe`. */
  completeConfig?(config: AutoCompleteConfig): void | Promise<void>;
  /**
   * Where it can run instances, its own choice first: it looks at `hosting.isolation`.
   * @default wherever it likes, and groups cannot choose
   */
  readonly isolations?: readonly Isolation[];
  /** Makes the executor of one instance. */
  createExecutor(context: ExecutorContext): Executor;
}

/** A version of a model in a repository, as its backend is told of it. */
export interface ModelSource {
  readonly name: string;
  readonly version: number;
  /** Directory of the model. */
  readonly directory: string;
  /** Directory of the version. */
  readonly versionDirectory: string;
  /** The configuration as far as it is known before the model's file is read. */
  readonly config: ModelConfig;
  /** Whether the model may complete its configuration. */
  readonly autoComplete: boolean;
  /** Settings of the backend: `backendConfig` of the server. */
  readonly settings: Readonly<Record<string, string>>;
  /** Writes a warning to the server's log. */
  warn(this: void, message: string): void;
}

/**
 * Makes the backend of one version of a model. What it throws is the reason why the version is not loaded.
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
