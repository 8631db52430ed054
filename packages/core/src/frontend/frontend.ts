import type { InferenceService } from "../service/inference-service.js";
import type { ListenAt } from "./listen.js";

/** Where a frontend listens. */
export interface FrontendAddress {
  readonly host: string;
  readonly port: number;
  /** Address for clients: `http://localhost:8000`, `localhost:8001`. */
  readonly url: string;
}

/** How another thread can make the same frontend. */
export interface ThreadedFrontend {
  /** URL of a module, and the name of its function that makes the frontend from the options. */
  readonly module: string;
  readonly name: string;
  /** Options of the frontend, which can be cloned, with `port`, `address` and `reusePort`. */
  readonly options: ThreadedFrontendOptions;
  /** How to listen at its port, besides the options. */
  readonly listening: Pick<ListenAt, "portHint" | "joinsFamilies">;
  /** Makes the error of this thread for a failure to open; the failure itself unless given. */
  readonly startError?: (failure: unknown) => unknown;
}

/** Options of every frontend that can run in another thread. */
export interface ThreadedFrontendOptions {
  readonly port: number;
  readonly address: string;
  readonly reusePort: boolean;
}

/** A transport in front of the service. It owns its sockets and nothing else. */
export interface Frontend {
  /** Name in messages: `http`, `grpc` or `metrics`. */
  readonly name: string;
  /** How to make this frontend in another thread; undefined if it can run only in this one. */
  readonly threaded?: ThreadedFrontend | undefined;
  /** Starts to listen. If the port is taken, rejects with a `TritonError` that names the port and its option. */
  start(service: InferenceService): Promise<FrontendAddress>;
  /**
   * Tells clients to leave, before {@link stop}: each connection ends after its next answer. The frontend still accepts
   * connections and requests.
   */
  leave?(): void;
  /**
   * Accepts no more connections. Resolves when requests that are on their way over connections that were just opened have
   * arrived. Called between {@link leave} and {@link stop}, while the service still accepts requests.
   */
  settle?(): Promise<void>;
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
  /**
   * Whether the dashboard of `@tritonjs/dashboard` is served: at `/dashboard` on the metrics port, or on the HTTP port
   * if there are no metrics. The path `/` of the HTTP port then points to it. @default false
   */
  readonly dashboard?: boolean;
}

/** Pages for people, which a frontend serves besides its own answers. */
export interface WebPages {
  /** Prefix of the paths of all pages: `/dashboard`. */
  readonly path: string;
  /** Where a frontend serves them. Set by that frontend when it starts, for others that point there. */
  servedAt?: FrontendAddress;
  /** Makes the handler of all paths below `path`. */
  open(service: InferenceService): (request: Request) => Promise<Response>;
}

/** Export `defaultFrontends` of a frontend package, for `serve()` without arguments. */
export type DefaultFrontends = (options: ServeOptions, pages?: WebPages) => Frontend[];
