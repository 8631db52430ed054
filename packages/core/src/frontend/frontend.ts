import type { Gpus } from "../config/gpus.js";
import type { ExtensionPage, ManagementRoute } from "../extension/extension.js";
import type { ModelSource } from "../extension/model-source.js";
import type { ModelVersion } from "../model/model-version.js";
import type { ModelRegistry } from "../model/registry.js";
import type { Log } from "../observe/log.js";
import type { MetricsPage } from "../observe/metrics-page.js";
import type { CacheUsage } from "../observe/model-families.js";
import type { Tracing } from "../observe/tracing.js";
import type { ServiceOptions } from "./service-options.js";

/** Where a frontend listens. */
export interface FrontendAddress {
  readonly host: string;
  readonly port: number;
  /** Address for clients: `http://localhost:8000`, `localhost:8001`. */
  readonly url: string;
}

/** A transport in front of a server. It owns its sockets and nothing else. */
export interface Frontend {
  /** Name in messages: `http`, `grpc` or `metrics`. */
  readonly name: string;
  /**
   * Moves frontends to threads, for `serve({ frontendThreads })`: `placeInThreads` of `@tritonjs/server`. The one of the
   * first frontend that has it is called with all of them.
   *
   * @returns the frontends in the order in which they are to be opened
   * @throws TritonError if a number of threads is asked for and none can run
   */
  place?(all: readonly Frontend[], threads: FrontendThreads, log: Log): Promise<readonly Frontend[]>;
  /** Starts to listen. If the port is taken, rejects with a `TritonError` that names the port and its option. */
  start(server: FrontendServer): Promise<FrontendAddress>;
  /** Tells clients to leave, before {@link stop}: connections end after their next answer, new ones are accepted. */
  leave?(): void;
  /**
   * Accepts no more connections. Resolves when requests that are on their way over connections that were just opened have
   * arrived. Called between {@link leave} and {@link stop}, while the server still accepts requests.
   */
  settle?(): Promise<void>;
  /**
   * Drains the frontend. It accepts no more connections, and ends connections without a request in flight. Resolves
   * when the requests in flight are answered. If `drainTimeoutMs` is given, it ends them after that time. Calling it
   * twice is harmless.
   */
  stop(drainTimeoutMs?: number): Promise<void>;
}

/** Number of threads for frontends; "auto" for a number by the number of cores. */
export type FrontendThreads = number | "auto";

/**
 * The server of a `Triton` as its frontends see it: `triton.server`. `serviceOf(triton)` of `@tritonjs/server` makes the
 * operations of the protocol of it.
 */
export interface FrontendServer {
  readonly options: ServiceOptions;
  /** The models in service, and the look-ups of the protocol. */
  readonly registry: ModelRegistry;
  /** The GPUs that instance groups may name, and the memory on them that clients share. */
  readonly gpus: Gpus;
  /** Models that come and go while the server runs. */
  readonly source: ModelSource;
  /** Log of the server and its frontends. */
  readonly log: Log;
  /** Traces of requests, if the server records any. */
  readonly tracing: Tracing | undefined;
  readonly metrics: MetricsPage;
  /** What extensions add to the management. */
  readonly routes: readonly ManagementRoute[];
  /** What extensions show, by their names. */
  readonly pages: ReadonlyMap<string, ExtensionPage>;
  /** Usage of the response cache; undefined without a cache, or if the cache does not report its usage. */
  cacheUsage(): CacheUsage | undefined;
  /** Changes the number of instances of a model's first group. @throws TritonError after which nothing has changed */
  changeInstances(model: ModelVersion, count: number): Promise<void>;
  /** Registers a part of a frontend that ends with the server. A server that drains already tells it at once. */
  mount(part: MountedFrontend): void;
}

/** A part of a frontend that is told how the server ends: routes in a server that the program opens and closes itself. */
export interface MountedFrontend {
  /** Called when the server will stop soon: tell clients to leave, and go on serving. */
  leave?(): void;
  /** Called when the `Triton` is closing: refuse new requests, let requests in flight finish. */
  drain(): void;
  /**
   * Called when all requests are answered or their time limit is over: end streams and watchers that are still open.
   */
  end(): void;
  /** Called when all models are out of service: release what requests could use until then. */
  close?(): void;
}
