import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { listenOnAll } from "../frontend/listen.js";
import type { Frontend, FrontendAddress, ThreadedFrontend } from "../frontend/serve-frontends.js";
import { MemoryUsage } from "../request/request-memory.js";
import type { InferenceService } from "../service/inference-service.js";
import { ServiceState } from "./engine-requests.js";
import { FrontendThread } from "./frontend-thread.js";

/*
 * `@tritonjs/core/frontend-threads`: HTTP and gRPC frontends in worker threads that share their ports.
 */

/**
 * Moves frontends to worker threads: those of `http()` and `grpc()` whose options can be sent to a thread. All threads
 * run all of these frontends. Others stay as they are, and come first.
 *
 * `serve()` calls it for the option `frontendThreads`.
 *
 * @param count number of threads, at least 1
 * @returns the frontends in the order in which they are to be opened
 * @example
 * ```ts
 * await triton.serve({ frontends: inThreads([http({ port: 8000 }), grpc({ port: 8001 })], 2) });
 * ```
 */
export function inThreads(frontends: readonly Frontend[], count: number): Frontend[] {
  const pool = new ThreadPool(count);
  const stays = frontends.filter(({ threaded }) => threaded === undefined);
  const moves = frontends.filter(({ threaded }) => threaded !== undefined);
  return [...stays, ...moves.map((frontend) => new PooledFrontend(frontend, pool))];
}

/** The threads that run the frontends of one server. They start with the first frontend and end with the last. */
class ThreadPool {
  #threads: readonly FrontendThread[] = [];
  #state: ServiceState | undefined;
  /** Frontends that are open or being opened. */
  #open = 0;

  constructor(private readonly count: number) {}

  /** Ids of the present workers, for tests and measurements. */
  get threadIds(): number[] {
    return this.#threads.map(({ threadId }) => threadId);
  }

  /** Opens a frontend in all threads, at one port. */
  async open(name: string, frontend: ThreadedFrontend, service: InferenceService): Promise<FrontendAddress> {
    this.#open++;
    if (this.#threads.length === 0) this.#start(service);
    const [first] = this.#threads;
    const { options } = frontend;
    const port = options.reusePort ? options.port : await tryPort(frontend);
    const shared = { ...frontend, options: { ...options, port, reusePort: true } };
    const address = await first!.open(shared, name);
    const same = { ...shared, options: { ...shared.options, port: address.port } };
    await Promise.all(this.#threads.map((thread) => thread === first || thread.open(same, name)));
    return address;
  }

  leave(name: string): void {
    for (const thread of this.#threads) thread.leave(name);
  }

  async settle(name: string): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.settle(name)));
  }

  /** Drains a frontend in all threads. */
  async stop(name: string, drainTimeoutMs: number | undefined): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.stop(name, drainTimeoutMs)));
    this.#open--;
    if (this.#open > 0) return;
    const threads = this.#threads;
    this.#threads = [];
    await Promise.all(threads.map((thread) => thread.end()));
    this.#state?.close();
  }

  #start(service: InferenceService): void {
    const { log: _, authentication, sharedMemory, requestMemory, restrictions, allowedHosts } = service;
    const state = new ServiceState(service, (change) => {
      for (const thread of this.#threads) thread.change(change);
    });
    this.#state = state;
    const memoryRows = MemoryUsage.rowsFor(this.count + 1);
    requestMemory.join(memoryRows, 0);
    const { maxDecompressions, ...memory } = requestMemory.options;
    const data = {
      metadata: service.serverMetadata(),
      namespacing: service.namespacing ?? false,
      restrictions,
      ...(allowedHosts !== undefined && { allowedHosts }),
      authentication: authentication && {
        challenge: authentication.challenge,
        publicEndpoints: authentication.publicEndpoints,
      },
      traces: service.tracing !== undefined,
      allowsSharedMemory: sharedMemory.allowed,
      regionUsers: sharedMemory.users,
      requestMemory: { ...memory, maxDecompressions: Math.ceil(maxDecompressions / this.count) },
      memoryRows,
      timeOrigin: performance.timeOrigin,
    };
    const owner = { service, state, data };
    this.#threads = Array.from({ length: this.count }, (_, i) => new FrontendThread(owner, i + 1));
  }
}

/**
 * Finds out whether another program has the port of a frontend, and chooses one for port 0. Nothing is answered
 * meanwhile: a client that saw the server ready could lose its connection when the threads open the port.
 *
 * @throws TritonError UNAVAILABLE if the port is taken
 */
async function tryPort({ options, listening }: ThreadedFrontend): Promise<number> {
  const { port, servers } = await listenOnAll<Server>(
    { ...options, reusePort: false, ...listening, lookup },
    () => createServer((socket) => socket.destroy()),
  );
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return port;
}

class PooledFrontend implements Frontend {
  readonly name: string;
  #isOpen = false;
  #stopping: Promise<void> | undefined;

  constructor(
    private readonly frontend: Frontend,
    private readonly pool: ThreadPool,
  ) {
    this.name = frontend.name;
  }

  async start(service: InferenceService): Promise<FrontendAddress> {
    this.#isOpen = true;
    this.#stopping = undefined;
    const { module, name, options, listening, startError } = this.frontend.threaded!;
    try {
      return await this.pool.open(this.name, { module, name, options, listening }, service);
    } catch (failure) {
      throw startError?.(failure) ?? failure;
    }
  }

  leave(): void {
    this.pool.leave(this.name);
  }

  settle(): Promise<void> {
    return this.pool.settle(this.name);
  }

  stop(drainTimeoutMs?: number): Promise<void> {
    if (!this.#isOpen) return Promise.resolve();
    this.#stopping ??= this.pool.stop(this.name, drainTimeoutMs);
    return this.#stopping;
  }
}
