import type { ModelConfig } from "../config/model-config.js";
import type { ModelMetadata } from "../config/model-metadata.js";
import type { Log } from "../observe/log/log.js";
import type { InferenceRequest } from "../request/inference-request.js";
import type { ModelStatisticsReport } from "./statistics-report.js";

/** The answer of `GET v2`. */
export interface ServerMetadata {
  readonly name: string;
  readonly version: string;
  readonly extensions: readonly string[];
}

/** One row of the repository index. */
export interface ModelIndexEntry {
  readonly name: string;
  readonly version?: string;
  readonly state?: string;
  readonly reason?: string;
}

/** A model version that is ready, as decoders need to know it. */
export interface ReadyModel {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  /** Class names by output, for classification. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

/**
 * The v2 operations, the same for all transports. Names and versions are as the client wrote them, an empty
 * version standing for the highest one that is ready. Every method throws `TritonError` with Triton's codes and
 * texts; nothing here knows a transport.
 */
export interface InferenceService {
  /** Where the server and its frontends write messages. Clients can change its settings. */
  readonly log: Log;
  isLive(): boolean;
  isReady(): boolean;
  serverMetadata(): ServerMetadata;
  /** False for unknown models and versions too. Throws INVALID_ARG for a version that is no number. */
  isModelReady(name: string, version: string): boolean;
  /** Looks a model up for inference. Throws NOT_FOUND or UNAVAILABLE. */
  model(name: string, version: string): ReadyModel;
  modelMetadata(name: string, version: string): ModelMetadata;
  modelConfig(name: string, version: string): ModelConfig;
  /** Statistics of one model, or of all for an empty name. */
  statistics(name: string, version: string): ModelStatisticsReport[];
  repositoryIndex(onlyReady: boolean): ModelIndexEntry[];
  /**
   * Checks a request and queues it. Throws when it is refused: its handler is then never called. Otherwise the
   * handler is called exactly once with `final`.
   */
  infer(request: InferenceRequest): void;
  /** The metrics page: Prometheus text. */
  metrics(): Promise<string>;
}
