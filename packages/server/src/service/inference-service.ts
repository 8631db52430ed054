import type {
  AllowedHosts,
  InferenceRequest,
  LoadParameters,
  Log,
  ManagementRoute,
  MetricsText,
  MountedFrontend,
  QueueSnapshot,
  ReadHeaders,
  RequestHandle,
  Tracing,
  UnloadParameters,
} from "@tritonjs/core/internal/server";
import type {
  ModelConfig,
  ModelIndexEntry,
  ModelMetadata,
  ModelStatisticsReport,
  ServerMetadata,
} from "@tritonjs/protocol";
import type { Authentication, Restrictions } from "../access/access-control.js";
import type { SharedMemory } from "../shared-memory/shared-memory.js";
import type { LoadReport, ModelReadiness } from "./model-reports.js";
import type { RefusalLine, WaitedQueue } from "./refusal-line.js";
import type { RequestMemory } from "./request-memory.js";
import type { ServerInspector } from "./server-inspector.js";
import type { ServiceChange } from "./service-watch.js";

/** The properties of a ready model version that decoders use. */
export interface ReadyModel {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  /** Class names by output, for classification. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
  /** Directory of the version in the model repository; undefined for a bound model. */
  readonly directory?: string | undefined;
  /** Whether its inputs may stay in memory of a GPU. @default false */
  readonly takesSources?: boolean;
}

/**
 * The model version that a look-up has found. A request is decoded with its configuration and passed to the same
 * version, so that a reload in between cannot mix two versions. Frontends use it through an `Exchange`.
 *
 * A look-up does not keep the version in service: as in Triton, a request is made after all of it has arrived.
 */
export interface FoundModel extends ReadyModel {
  /** False after a reload or an unload: another look-up finds the version that serves now. */
  readonly inService: boolean;
  /** Its queue, where requests wait for room. Undefined for a model whose queue is in another thread. */
  readonly requests?: WaitedQueue | undefined;
  /**
   * Checks a request and queues it. When it throws, the request is refused and its sender gets nothing. Otherwise the
   * sender gets exactly one final outcome.
   */
  /** Header with the key by which the version of a request without a version is chosen; undefined for none. */
  readonly keyHeader?: string | undefined;
  /** Headers of clients that its scheduler looks at; undefined for none. */
  readonly reads?: ReadHeaders | undefined;
  /** The version that answers a request without a version. @default this one */
  chosen?(request: InferenceRequest): FoundModel;
  infer(request: InferenceRequest): RequestHandle;
}

/**
 * The v2 operations, the same for all transports. Names and versions are given as the client wrote them. An empty
 * version means the highest one that is ready. Every method throws `TritonError` with Triton's codes and texts. The
 * operations do not depend on a transport.
 */
export interface InferenceService {
  /** Log of the server and its frontends. Clients can change its settings. */
  readonly log: Log;
  /** Traces of requests, if the server records any. */
  readonly tracing?: Tracing | undefined;
  /** Shared-memory regions of clients, which can hold inputs and outputs. */
  readonly sharedMemory: SharedMemory;
  /** The memory of requests that frontends receive. */
  readonly requestMemory: RequestMemory;
  /** Token that clients send to use restricted endpoints; undefined if nothing is restricted. */
  readonly accessToken?: string | undefined;
  /** Restrictions of groups of operations, for frontends without restrictions of their own. */
  readonly restrictions: Restrictions;
  /** Names under which browsers may use the server; none unless given. */
  readonly allowedHosts?: AllowedHosts;
  /** Authenticates the requests of all frontends; undefined if every client is accepted. */
  readonly authentication?: Authentication | undefined;
  /** Operations that extensions add to the management; none unless given. */
  readonly management?: readonly ManagementRoute[];
  /** State of all models for operators. It is not part of the protocol. */
  readonly inspector?: ServerInspector;
  isLive(): boolean;
  /** True while the server accepts requests and all of its models are in service. */
  isReady(): boolean;
  serverMetadata(): ServerMetadata;
  /** False for unknown models and versions too. Throws INVALID_ARG for a version that is not a number. */
  isModelReady(name: string, version: string): boolean;
  /** Like `isReady`, and also asks models that report their own readiness: `is_ready` of Python models. */
  checkReady(): Promise<boolean>;
  /** Like `isModelReady`, and also asks the model if it reports its own readiness. */
  checkModelReady(name: string, version: string): Promise<boolean>;
  /** Like `checkModelReady`, with the reason why the model is not ready, such as the error of its load. */
  modelReadiness(name: string, version: string): Promise<ModelReadiness>;
  /** Looks a model up for inference, once for each request. Throws NOT_FOUND or UNAVAILABLE. */
  model(name: string, version: string): FoundModel;
  /** @throws TritonError UNAVAILABLE while the server refuses requests */
  assertOpen(): void;
  modelMetadata(name: string, version: string): ModelMetadata;
  modelConfig(name: string, version: string): ModelConfig;
  /** Statistics of one model, or of all models for an empty name. */
  statistics(name: string, version: string): ModelStatisticsReport[];
  /** Snapshot of the queue of a model. It is not an operation of the protocol: programs use it for inspection. */
  queue(name: string, version: string): QueueSnapshot;
  /** Load of a model, for proxies that balance by it. Throws as {@link model}. It is not an operation of the protocol. */
  loadReport?(name: string, version: string): Promise<LoadReport>;
  /** Lists the models and their states. */
  repositoryIndex(onlyReady: boolean): Promise<ModelIndexEntry[]>;
  /**
   * Loads or reloads a model of the repository. Resolves when it is in service. Throws UNAVAILABLE where clients are
   * not allowed to load models, and INTERNAL or INVALID_ARG for a model that cannot be loaded.
   */
  loadModel(name: string, parameters: LoadParameters): Promise<void>;
  /** Takes a model of the repository out of service. Resolves when it accepts no more requests. */
  unloadModel(name: string, parameters: UnloadParameters): Promise<void>;
  /**
   * Adds a directory of models, which load on request. Throws UNAVAILABLE unless models are loaded explicitly,
   * INVALID_ARG for a directory that does not exist, ALREADY_EXISTS for one that is registered.
   *
   * @param modelNames other names for its models, by the names of their directories
   */
  registerModelRepository?(path: string, modelNames?: Readonly<Record<string, string>>): Promise<void>;
  /** Removes a registered directory. Its models that are in service stay so until they are unloaded. */
  unregisterModelRepository?(path: string): void;
  /**
   * Calls `listener` whenever the readiness of the server or of a model may have changed. Returns a function that
   * removes it.
   */
  onChange(listener: () => void): () => void;
  /**
   * The line of requests that found a full queue, and of refusals. Undefined where each is answered at once, or waits in
   * another thread.
   */
  readonly refusals?: Pick<RefusalLine, "placeFor" | "turn">;
  /** True if models of several repositories may have one name. */
  readonly namespacing?: boolean;
  /**
   * Calls `listener` now with the whole state that copies of the service in other threads need, and then at once with
   * each change. There can be one listener. Returns a function that removes it.
   */
  watch?(listener: (change: ServiceChange) => void): () => void;
  /**
   * Registers a frontend that runs in a server of the program, so that it is told when the `Triton` closes. `serve()`
   * does the same for its frontends.
   */
  mount?(frontend: MountedFrontend): void;
  /**
   * Loads what the metrics page needs. A frontend that serves the page calls this when it starts, so that the first
   * scrape does not hold the event loop for the time that loading takes.
   */
  prepareMetrics?(): Promise<void>;
  /**
   * Adds to a counter of a frontend on the metrics page. The first call makes the counter. Absent where the page is in
   * another thread.
   *
   * @param labels the same names in each call
   */
  countMetric?(
    counter: { readonly name: string; readonly help: string },
    labels: Readonly<Record<string, string>>,
    amount: number,
  ): void;
  /** The metrics page, as Prometheus text. */
  metrics(): Promise<string>;
  /**
   * The metrics page in the format that a client wants.
   *
   * @param accept its header `Accept`. OpenMetrics, with the trace ids of traced requests, is written for a client that
   * names this format, and Prometheus' text for others.
   */
  metricsFor(accept: string | undefined): Promise<MetricsText>;
}
