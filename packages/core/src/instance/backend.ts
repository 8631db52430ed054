import type {
  DescribedTensor,
  InstanceHosting,
  Isolation,
  ModelConfig,
  Shape,
  TensorSpec,
  TritonError,
} from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import type { BatchLayout } from "../batch/batch-layout.js";
import type { Tensors } from "../batch/batch-tensors.js";
import type { InstanceInfo, ModelCaller, RESCHEDULE, TensorCaller } from "../callback/infer-func.js";
import type { AutoCompleteConfig } from "../config/auto-complete-config.js";
import type { Gpus } from "../config/gpus.js";
import type { InstancePlacement } from "../config/instance-groups.js";
import type { Log } from "../observe/log.js";
import type { OutputChecker } from "../request/inference-response.js";
import type { ExecutableRequest } from "../request-info.js";
import type { Clock } from "../system/clock.js";
import type { HostPolicy } from "../system/host-policy.js";

/** Description of a model that a backend read from the model's file. */
export interface ModelDescription {
  /** Tensors with all their dimensions as the file declares them, including the batch axis. */
  readonly inputs: readonly DescribedTensor[];
  readonly outputs: readonly DescribedTensor[];
  /** Inputs with a default in the file. A model has those that its configuration makes optional inputs. */
  readonly optionalInputs?: readonly DescribedTensor[];
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
  /** Host policy of the instance. */
  readonly hostPolicy?: HostPolicy | undefined;
  /** Number of requests of the model that wait in its queue. */
  readonly queuedRequests: () => number;
  /** The server's log. */
  readonly log: Log;
  /** Registry of further metrics besides those of the library: `triton.metrics`. */
  readonly metrics: () => Registry;
  /** The GPUs of the server; undefined for an executor that is not part of one. */
  readonly gpus?: Gpus | undefined;
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
   * @param hostPolicy of the first instance
   */
  open?(config: ModelConfig, hostPolicy?: HostPolicy): Promise<ModelDescription>;
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
  /** Hosting of a model of a repository, as `hostingOf` reads it. Settings of an instance group take precedence. */
  readonly hosting?: InstanceHosting;
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
export interface ModelFiles {
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
  /** Parameters that extensions of the server read. @default none */
  readonly otherParameters?: ParameterTable;
  /** Writes a warning to the server's log. */
  warn(this: void, message: string): void;
}

/**
 * What the text of a parameter names. `value`: nothing on this machine. `read`: a file or a directory, relative to that
 * of the version or of the model. `execute`: a program, a library or an environment, by its absolute path or below
 * `$$TRITON_MODEL_DIRECTORY`. `write`: a place where the server, or native code in it, creates files. `connect`: an
 * address or a socket.
 */
export type ParameterUse = "value" | "read" | "execute" | "write" | "connect";

/** Parameters by name. A name that ends in `*` is for all parameters that begin so and that no other row names. */
export type ParameterTable = Readonly<Record<string, ParameterUse>>;

/**
 * Creates the backend of one version of a model. If it throws, the version is not loaded, and the error is the reason.
 *
 * A factory may declare the parameters of its models. A load request over the network cannot name a path outside of the
 * model repository with them, nor a place to write or an address, unless the server allows the files of load requests.
 * Parameters that are not declared may then not look like such a path. `Object.assign(factory, { parameters })` declares
 * them.
 *
 * @example
 * ```ts
 * const shout: BackendFactory = ({ versionDirectory }) => ({
 *   backendName: "shout",
 *   platform: "",
 *   describe: () => undefined,
 *   createExecutor: (context) => new ShoutExecutor(versionDirectory, context),
 * });
 * new Triton({ extensions: [repository({ modelRepository: "./models", backends: { shout } })] });
 * ```
 */
export interface BackendFactory {
  (source: ModelFiles): Backend | Promise<Backend>;
  /** The parameters of a model that it reads. @default none is declared */
  readonly parameters?: ParameterTable;
  /** Parameters of `optimization.execution_accelerators`. @default none is declared */
  readonly acceleratorParameters?: ParameterTable;
}

/** True for a backend, as opposed to a function or a URL. */
export function isBackend(value: unknown): value is Backend {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as Partial<Backend>).createExecutor === "function"
  );
}

/** Is notified of cancellations in a running batch, for an executor that works on another thread or process. */
export interface ExecutionWatcher {
  /** The request at `index` was cancelled. Called at most once. */
  givenUp(index: number): void;
  /** No more answers to the request at `index` are wanted. Answers that the model still sends are delivered. */
  askedToStop?(index: number): void;
}

/** One batch on its way through an executor. */
export interface Execution {
  readonly requests: readonly ExecutableRequest[];
  /** The inputs of all requests, if they are already joined. */
  readonly mergedInputs?: Tensors;
  /** Rules that join the inputs and split the outputs; undefined if both are done by rows. */
  readonly layout?: BatchLayout | undefined;
  /** Aborted when every request of the batch has been cancelled. Created on first use. */
  readonly signal: AbortSignal;
  /**
   * Latest deadline of the requests, in milliseconds on `clock`; undefined if a request has none, and in a worker. A
   * backend that passes the batch on passes on what is left of it.
   */
  readonly deadline?: number | undefined;
  /** Calls other models on behalf of the batch. Calls with tensors exist only on the main thread. */
  readonly models: ModelCaller & Partial<TensorCaller>;
  /** Clock of the model: the real one in a worker. */
  readonly clock: Clock;
  /** True if requests get any number of responses, through the methods below. */
  readonly decoupled: boolean;
  /**
   * Calls `fn` in the asynchronous context in which the span of the batch's first traced request is the active one.
   * Undefined if none is traced.
   */
  readonly within?: (<T>(fn: () => T) => T) | undefined;
  /**
   * Record the moments at which the inputs are ready for the model, and at which the model has its outputs. The
   * executor calls them.
   */
  inputsReady(): void;
  outputsReady(): void;
  /** Reports that the inputs were ready earlier, but the model was busy with another batch until now. */
  postponed?(): void;
  /** Sets the one watcher, which is notified from now on; not of requests that are already over. */
  watch(watcher: ExecutionWatcher): void;
  /** False once the request at `index` is over, so that nothing needs to be computed for it. */
  isOpen(index: number): boolean;
  /**
   * Undefined while the consumer of the request at `index` keeps up, else a promise that resolves when it does again.
   */
  writable(index: number): Promise<void> | undefined;
  /** Sends a response to the request at `index`. */
  send(index: number, outputs: Tensors, final?: boolean): void;
  /** Sends an error to the request at `index`, which continues unless the error is final. */
  sendError(index: number, error: TritonError, final?: boolean): void;
  /** Ends the request at `index` without another response. */
  finish(index: number): void;
  /** Schedules the request at `index` for the next batch again; only for iterative sequences. */
  reschedule(index: number): void;
}

export type CallbackExecution = Omit<Execution, "watch">;

/** Result of one request: its outputs, its error, or that the model wants to run it again. */
export type ExecutionResult = Tensors | TritonError | typeof RESCHEDULE;

/**
 * Refuses an input by its shape alone.
 *
 * @param shape shape that the caller gave, without the batch axis for a single sample
 * @throws TritonError INVALID_ARG for an input that the model would refuse
 */
export type InputCheck = (name: string, shape: Shape) => void;

/**
 * Runs batches on this thread, in a worker or in a process. It runs one batch at a time, unless it has `capacity` for
 * more. It knows neither queues nor statistics.
 */
export interface Executor {
  /** Where it runs; absent if the backend does not tell. */
  readonly isolation?: Isolation;
  /** Memory in use after its last batch, if it is measured. */
  readonly memoryBytes?: number | undefined;
  /** Counts the restarts after crashes; absent for executors that never restart. */
  readonly restarts?: { readonly count: number };
  /** Properties of the loaded model, for instance `executionProvider`. */
  readonly details: Readonly<Record<string, string>>;
  /** Number of batches that it takes at a time, which may change. Call `onRoom` when it has grown. @default 1 */
  readonly capacity?: number;
  /**
   * True while it starts no batch although it has capacity for one, because others need the event loop first. Call
   * `onRoom` when that is over. @default false
   */
  readonly isPausing?: boolean;
  /**
   * True if it may get its next batch while it runs one, and then starts that batch directly afterwards; or the number
   * of batches that it may get so. @default false
   */
  readonly takesAhead?: boolean | number;
  /** True if it runs batches above the maximum batch size, which only a warm-up sample can have. @default false */
  readonly takesAnyBatchSize?: boolean;
  /**
   * True if neither it nor the model reads the inputs of a batch after `execute` has returned its results: the memory of
   * large requests is then freed, unless a result is a view of it. An executor that wraps this one, and keeps
   * the inputs, must say false. @default false
   */
  readonly releasesInputs?: boolean;
  /**
   * True if it takes inputs whose elements are elsewhere, such as on a GPU (`Tensor.source`), and does not write to
   * inputs. Steps of ensembles then pass such tensors on as they are. @default false
   */
  readonly takesSources?: boolean;
  /** Refuses inputs before they are queued; in calls in process, before they are copied. Absent without limits. */
  readonly checkInput?: InputCheck | undefined;
  /** Prepares to run; rejects if the model cannot be loaded. */
  start(): Promise<void>;
  /**
   * Runs a batch, and returns one result for each request, in order. Undefined if the executor answers through
   * `execution`, as it must for a decoupled model. A rejection fails all open requests of the batch.
   */
  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined>;
  /** Asks the model whether it can be used now; rejects with the reason if not. Absent if models cannot tell. */
  checkReady?(): Promise<void>;
  /**
   * Resolves when all requests whose `execute` has returned are answered. Absent if `execute` returns only after the
   * answers.
   */
  drained?(): Promise<void>;
  /** Releases all resources, after the current batch. */
  stop(): Promise<void>;
  /** True for native code, which cannot be interrupted, so stopping waits for its batch. */
  readonly mustFinish: boolean;
  /**
   * Called when the executor fails or recovers by itself, with a reason once it cannot recover. Set by the instance
   * group.
   */
  onHealth?: ((healthy: boolean, reason?: TritonError) => void) | undefined;
  /** Called by an executor whose capacity has grown by itself. Set by the instance group. */
  onRoom?: (() => void) | undefined;
}
