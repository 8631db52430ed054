import type {
  ModelConfig,
  ModelIndexEntry,
  ModelMetadata,
  ModelStatisticsReport,
  ServerMetadata,
} from "@tritonjs/protocol";

import type { QueueSnapshot } from "../model/queue-snapshot.js";
import type { Log } from "../observe/log/log.js";
import type { Tracing } from "../observe/trace/tracing.js";

import type { LoadParameters, UnloadParameters } from "../repository/load-parameters.js";
import type { InferInit, ResponseHandler } from "../request/inference-request-init.js";
import type { RequestHandle } from "../request/request-handle.js";
import type { RequestMemory } from "../request-memory/request-memory.js";
import type { SharedMemory } from "../shared-memory/shared-memory.js";
import type { Restrictions } from "./restrictions.js";

/** A model version that is ready, as decoders need to know it. */
export interface ReadyModel {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  /** Class names by output, for classification. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

/** Routes or methods of this library in a server that the program opens and closes itself. */
export interface MountedFrontend {
  /** The `Triton` is closing: refuse new requests, let those in flight finish. */
  drain(): void;
  /** All requests are answered, or the time for them is over: end streams and watchers that are still open. */
  end(): void;
}

/**
 * The version that one look-up has found. A frontend decodes a request with its configuration and hands it to the same
 * version, so that a reload in between cannot mix two versions.
 *
 * A pin does not keep its version in service. A request is made when all of it has arrived, as in Triton: a frontend
 * calls {@link inService} after each wait, and decodes and calls {@link infer} without another wait.
 */
export interface PinnedModel extends ReadyModel {
  /**
   * This pin while its version is in service. After a reload or an unload, the pin of another look-up.
   *
   * @throws TritonError NOT_FOUND or UNAVAILABLE if no version is in service.
   */
  inService(): PinnedModel;
  /**
   * Tells whether the queue takes requests, before a frontend decodes one. Undefined if it does; otherwise a promise of
   * the refusal's turn, which rejects with UNAVAILABLE, or resolves if there is room by then.
   *
   * @param id what the client calls the request; empty while that is unknown
   */
  awaitRoom(id: string): Promise<void> | undefined;
  /**
   * Makes a request, checks it and queues it. Throws when the request is refused: the handler is then never called.
   * Otherwise the handler is called exactly once with `final`.
   */
  infer(init: InferInit, onResponse: ResponseHandler): RequestHandle;
}

/**
 * The v2 operations, the same for all transports. Names and versions are as the client wrote them, an empty
 * version standing for the highest one that is ready. Every method throws `TritonError` with Triton's codes and
 * texts; nothing here knows a transport.
 */
export interface InferenceService {
  /** Where the server and its frontends write messages. Clients can change its settings. */
  readonly log: Log;
  /** Traces of requests, on servers that record them. */
  readonly tracing?: Tracing | undefined;
  /** Regions of clients, in which inputs and outputs can be. */
  readonly sharedMemory: SharedMemory;
  /** The memory of requests that frontends receive. */
  readonly requestMemory: RequestMemory;
  /** What clients have to send for which operations, unless a frontend has restrictions of its own. */
  readonly restrictions: Restrictions;
  isLive(): boolean;
  /** Whether the server takes requests, and all of its models are in service. */
  isReady(): boolean;
  serverMetadata(): ServerMetadata;
  /** False for unknown models and versions too. Throws INVALID_ARG for a version that is no number. */
  isModelReady(name: string, version: string): boolean;
  /** As `isReady`, and asks the models that can say for themselves: `is_ready` of Python models. */
  checkReady(): Promise<boolean>;
  /** As `isModelReady`, and asks the model if it can say for itself. */
  checkModelReady(name: string, version: string): Promise<boolean>;
  /** Looks a model up for inference, once for each request. Throws NOT_FOUND or UNAVAILABLE. */
  model(name: string, version: string): PinnedModel;
  modelMetadata(name: string, version: string): ModelMetadata;
  modelConfig(name: string, version: string): ModelConfig;
  /** Statistics of one model, or of all for an empty name. */
  statistics(name: string, version: string): ModelStatisticsReport[];
  /** What the requests of a model are waiting for. No operation of the protocol: for programs that look at it. */
  queue(name: string, version: string): QueueSnapshot;
  /** Which models there are, and in which state. */
  repositoryIndex(onlyReady: boolean): Promise<ModelIndexEntry[]>;
  /**
   * Loads a model of the repository, or loads it again; resolves when it is in service. Throws UNAVAILABLE where
   * clients may not, INTERNAL and INVALID_ARG for a model that cannot be loaded.
   */
  loadModel(name: string, parameters: LoadParameters): Promise<void>;
  /** Takes a model of the repository out of service; resolves when it takes no more requests. */
  unloadModel(name: string, parameters: UnloadParameters): Promise<void>;
  /** Calls back whenever readiness of the server or of a model may have changed. Returns what ends that. */
  onChange(listener: () => void): () => void;
  /**
   * The turn of a refusal that {@link PinnedModel.infer} has thrown, or undefined if the client may be told at once. Clients
   * that retry at once thereby leave turns of the event loop to the running requests.
   */
  refusalTurn?(): Promise<void> | undefined;
  /** Tells a frontend in a server of the program's own when the `Triton` closes, as `serve()` tells its frontends. */
  mount?(frontend: MountedFrontend): void;
  /** The metrics page: Prometheus text. */
  metrics(): Promise<string>;
}
