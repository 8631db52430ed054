import type { InferenceService } from "../service/inference-service.js";

/** Where a frontend listens. */
export interface FrontendAddress {
  readonly host: string;
  readonly port: number;
  /** Address for clients: `http://localhost:8000`, `localhost:8001`. */
  readonly url: string;
}

/** A transport in front of the service. It owns its sockets and nothing else. */
export interface Frontend {
  /** Name in messages: `http`, `grpc` or `metrics`. */
  readonly name: string;
  /** Starts to listen. If the port is taken, rejects with a `TritonError` that names the port and its option. */
  start(service: InferenceService): Promise<FrontendAddress>;
  /**
   * Drains the frontend. It accepts no more connections, and ends connections without a request in flight. Resolves
   * when the requests in flight are answered. If `drainTimeoutMs` is given, it ends them after that time. Calling it
   * twice is harmless.
   */
  stop(drainTimeoutMs?: number): Promise<void>;
}

/** Which default frontends to open, and where. Port 0 takes any free one. */
export interface ServeOptions {
  readonly allowHttp: boolean;
  readonly httpAddress: string;
  readonly httpPort: number;
  /** Largest size of a request body in bytes, before and after decompression. */
  readonly httpMaxInputSize: number;
  readonly allowGrpc: boolean;
  readonly grpcAddress: string;
  readonly grpcPort: number;
  /** Largest size of a gRPC message in bytes, before and after decompression. */
  readonly grpcMaxReceiveMessageSize: number;
  readonly allowMetrics: boolean;
  readonly metricsAddress: string;
  readonly metricsPort: number;
}

/** Export `defaultFrontends` of a frontend package, for `serve()` without arguments. */
export type DefaultFrontends = (options: ServeOptions) => Frontend[];
