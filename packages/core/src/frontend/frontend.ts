import type { InferenceService } from "../service/inference-service.js";

/** Where a frontend listens. */
export interface FrontendAddress {
  readonly host: string;
  readonly port: number;
  /** What a client is given: `http://localhost:8000`, `localhost:8001`. */
  readonly url: string;
}

/** A transport in front of the service: it owns its sockets and nothing else. */
export interface Frontend {
  /** `http`, `grpc` or `metrics`, for messages. */
  readonly name: string;
  /** Starts to listen. Rejects with a `TritonError` that names the port and its option when the port is taken. */
  start(service: InferenceService): Promise<FrontendAddress>;
  /**
   * Stops accepting, ends connections on which no request is under way, and resolves when the requests at hand are
   * answered; after `drainTimeoutMs`, if given, it ends those too. Calling it twice is harmless.
   */
  stop(drainTimeoutMs?: number): Promise<void>;
}

/** Which of the default frontends to open, and where. Port 0 takes any free one. */
export interface ServeOptions {
  readonly allowHttp: boolean;
  readonly httpAddress: string;
  readonly httpPort: number;
  /** Largest request body in bytes, also after decompression. */
  readonly httpMaxInputSize: number;
  readonly allowGrpc: boolean;
  readonly grpcAddress: string;
  readonly grpcPort: number;
  /** Largest gRPC message in bytes, also after decompression. */
  readonly grpcMaxReceiveMessageSize: number;
  readonly allowMetrics: boolean;
  readonly metricsAddress: string;
  readonly metricsPort: number;
}

/** What a frontend package exports as `defaultFrontends`, for `serve()` without arguments. */
export type DefaultFrontends = (options: ServeOptions) => Frontend[];
