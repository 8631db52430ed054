import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import {
  type FrontendAddress,
  type InferenceService,
  listenOnAll,
  MemoryUsage,
  type ThreadedFrontend,
} from "@tritonjs/core/frontend";
import { FrontendThread } from "./frontend-thread.js";
import { ServiceState } from "./service-state.js";

/** The threads that run the frontends of one server. They start with the first frontend and end with the last. */
export class ThreadPool {
  readonly #count: number;
  #threads: readonly FrontendThread[] = [];
  #state: ServiceState | undefined;
  /** Frontends that are open or being opened. */
  #open = 0;

  constructor(count: number) {
    this.#count = count;
  }

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
    const memoryRows = MemoryUsage.rowsFor(this.#count + 1);
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
      requestMemory: { ...memory, maxDecompressions: Math.ceil(maxDecompressions / this.#count) },
      memoryRows,
      timeOrigin: performance.timeOrigin,
    };
    const owner = { service, state, data };
    this.#threads = Array.from({ length: this.#count }, (_, i) => new FrontendThread(owner, i + 1));
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
