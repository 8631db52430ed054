import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { MessageChannel, Worker } from "node:worker_threads";
import {
  type Frontend,
  type FrontendAddress,
  type LogChanges,
  type LogSubject,
  type ManagementRequest,
  RestartPause,
  type TraceChanges,
} from "@tritonjs/core/internal/server";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { listenOnAll } from "../frontend/listen.js";
import type { ServiceFrontend, ThreadedFrontend } from "../frontend/service-frontend.js";
import type { InferenceService } from "../service/inference-service.js";
import { MemoryUsage } from "../service/request-memory.js";
import { type Served, serviceOf } from "../service/service-of.js";
import type { ServiceChange } from "../service/service-watch.js";
import {
  type ClonedAuthenticationRequest,
  Control,
  FORWARDED,
  type FrontendThreadData,
  type Methods,
  withOperations,
} from "./control.js";
import { EngineRequests, type SentArrival, ServiceState } from "./engine-requests.js";
import { createRing } from "./ring.js";
import { ThreadLink } from "./thread-link.js";

/*
 * `@tritonjs/server/frontend-threads`: HTTP and gRPC frontends in worker threads that share their ports.
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
export function inThreads(frontends: readonly ServiceFrontend[], count: number): Frontend[] {
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
    const memoryRows = MemoryUsage.rowsFor(this.count + 1);
    requestMemory.join(memoryRows, 0);
    const { maxDecompressions, ...memory } = requestMemory.options;
    const data = {
      metadata: service.serverMetadata(),
      namespacing: service.namespacing ?? false,
      management: withOperations(service.management ?? [], ({ run: _, ...told }) => told),
      restrictions,
      ...(allowedHosts !== undefined && { allowedHosts }),
      authentication: authentication && {
        challenge: authentication.challenge,
        publicEndpoints: authentication.publicEndpoints,
      },
      traces: service.tracing !== undefined,
      allowsSharedMemory: sharedMemory.allowed,
      gpuRegions: sharedMemory.gpuModule,
      regionUsers: sharedMemory.users,
      requestMemory: { ...memory, maxDecompressions: Math.ceil(maxDecompressions / this.count) },
      memoryRows,
      timeOrigin: performance.timeOrigin,
    };
    const state = new ServiceState(service, data, (change) => {
      for (const thread of this.#threads) thread.change(change);
    });
    this.#state = state;
    this.#threads = Array.from({ length: this.count }, (_, i) => new FrontendThread(state, i + 1));
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
    private readonly frontend: ServiceFrontend,
    private readonly pool: ThreadPool,
  ) {
    this.name = frontend.name;
  }

  async start(served: Served): Promise<FrontendAddress> {
    this.#isOpen = true;
    this.#stopping = undefined;
    const { module, name, options, listening, startError } = this.frontend.threaded!;
    try {
      return await this.pool.open(this.name, { module, name, options, listening }, serviceOf(served));
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

/** Milliseconds after which a thread that still runs has not failed in a row. */
const STEADY_AFTER_MS = 60_000;

/** Milliseconds that a thread has to end by itself. */
const END_WITHIN_MS = 1000;

/**
 * Most megabytes of the young generation of a thread's heap, twice the default. With less, streams of gRPC outlive two
 * collections and are copied to the old generation, which took about a tenth of the CPU time of a call.
 */
const YOUNG_GENERATION_MB = 96;

/** A thread that runs frontends. If it ends by itself, its requests are cancelled and it is started again. */
class FrontendThread {
  readonly #frontends = new Map<string, ThreadedFrontend>();
  #run: Run;
  #startedAt = performance.now();
  readonly #pause = new RestartPause();
  #restart: NodeJS.Timeout | undefined;
  #ending = false;

  constructor(
    private readonly state: ServiceState,
    /** Number in messages, and row of the memory of its requests; the engine has row 0. */
    private readonly number: number,
  ) {
    this.#run = this.#start();
  }

  /** Id of the present worker. */
  get threadId(): number {
    return this.#run.worker.threadId;
  }

  /** Opens a frontend, also after a restart. Rejects if the port cannot be used. */
  open(frontend: ThreadedFrontend, name: string): Promise<FrontendAddress> {
    this.#frontends.set(name, frontend);
    return this.#run.control.call<FrontendAddress>("open", name, frontend);
  }

  leave(name: string): void {
    this.#run.control.tell("leave", name);
  }

  /** Settles a frontend. Resolves also if the thread ends meanwhile. */
  async settle(name: string): Promise<void> {
    await this.#run.control.call("settle", name).catch(() => {});
  }

  /** Drains a frontend. Resolves also if the thread ends meanwhile. */
  async stop(name: string, drainTimeoutMs: number | undefined): Promise<void> {
    this.#frontends.delete(name);
    await this.#run.control.call("stop", name, drainTimeoutMs).catch(() => {});
  }

  change(change: ServiceChange): void {
    this.#run.control.sendChange(change);
  }

  async end(): Promise<void> {
    this.#ending = true;
    clearTimeout(this.#restart);
    const { worker, control, ended } = this.#run;
    control.tell("end");
    const late = setTimeout(() => void worker.terminate(), END_WITHIN_MS);
    await ended;
    clearTimeout(late);
  }

  #start(): Run {
    const run = new Run(this.state, this.number);
    this.#startedAt = performance.now();
    void run.ended.then((cause) => this.#ended(cause));
    return run;
  }

  #ended(cause: string): void {
    MemoryUsage.end(this.state.data.memoryRows, this.number);
    this.state.service.sharedMemory.settleAll();
    if (this.#ending) return;
    if (performance.now() - this.#startedAt > STEADY_AFTER_MS) this.#pause.reset();
    const delayMs = this.#pause.next();
    this.state.service.log
      .of("frontend_threads")
      .error(
        `frontend thread ${this.number} has ended: ${cause}. Its connections are closed, its requests are cancelled. ` +
          `It is started again in ${delayMs} ms`,
      );
    this.#restart = setTimeout(() => void this.#startAgain(), delayMs);
  }

  async #startAgain(): Promise<void> {
    const run = this.#start();
    this.#run = run;
    for (const [name, frontend] of this.#frontends) {
      try {
        await run.control.call("open", name, frontend);
      } catch (error) {
        const { message } = TritonError.from(error);
        this.state.service.log
          .of("frontend_threads")
          .error(`frontend thread ${this.number} cannot open ${name} again: ${message}`);
        await run.worker.terminate();
        return;
      }
    }
  }
}

/** One life of a thread. */
class Run {
  readonly worker: Worker;
  readonly control: Control;
  /** Resolves with the cause when the thread has ended. */
  readonly ended: Promise<string>;

  constructor(state: ServiceState, row: number) {
    const { service, data } = state;
    const rings = [createRing(), createRing()] as const;
    const memory = new MessageChannel();
    const messages = new MessageChannel();
    const signals = new SharedArrayBuffer(4);
    const requests = new EngineRequests(service, state, () => link);
    const methods = { wake: () => link.wake(), ...serviceCalls(service, requests) };
    const control = new Control(messages.port1, signals, methods, true);
    const link: ThreadLink = new ThreadLink(
      { incoming: rings[0], outgoing: rings[1], memory: memory.port1 },
      control,
      requests,
    );
    const workerData: FrontendThreadData = {
      link: { incoming: rings[1], outgoing: rings[0], memory: memory.port2 },
      control: messages.port2,
      signals,
      service: { ...data, memoryRow: row, state: state.snapshot() },
    };
    this.control = control;
    this.worker = new Worker(new URL("./thread-main.js", import.meta.url), {
      name: `tritonjs frontend ${row}`,
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
      transferList: [memory.port2, messages.port2],
    });
    this.ended = new Promise((resolve) => {
      let cause = "";
      this.worker.on("error", (error: unknown) => {
        cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
      });
      this.worker.once("exit", (code) => {
        link.close();
        control.close(errorFor("SERVER_STOPPING", "the frontend thread has ended"));
        requests.close();
        resolve(cause === "" ? `exit code ${code}` : cause);
      });
    });
  }
}

function serviceCalls(service: InferenceService, requests: EngineRequests): Methods {
  const { log, sharedMemory, tracing, authentication } = service;
  const forwarded = Object.fromEntries(
    FORWARDED.map((name) => [
      name,
      (...args: unknown[]) => (service[name] as (...args: unknown[]) => unknown).apply(service, args),
    ]),
  );
  return {
    ...forwarded,
    manage: (path: string, method: "get" | "post", request: ManagementRequest) =>
      service.management?.find((route) => route.path === path)?.[method]?.run(request),
    authenticate: (request: ClonedAuthenticationRequest) =>
      authentication?.check({ ...request, headers: new Headers(request.headers.map(([...pair]) => pair)) }),
    updateLog: (changes: LogChanges) => log.update(changes),
    log: (level: "error" | "warning" | "info", message: string, about?: LogSubject) =>
      log[level](message, about),
    logVerbose: (message: string, about?: LogSubject) => log.verbose(1, message, about),
    traceSettings: (model: string) => tracing?.settings(model),
    updateTraces: (model: string, changes: TraceChanges) => tracing?.update(model, changes),
    tracedHere: (model: string, arrival: SentArrival, status: number | string | undefined) =>
      requests.tracedThere(model, arrival, status),
    systemStatus: (name: string) => sharedMemory.systemStatus(name),
    registerSystem: (name: string, region: Parameters<typeof sharedMemory.registerSystem>[1]) =>
      sharedMemory.registerSystem(name, region),
    unregisterSystem: (name: string) => sharedMemory.unregisterSystem(name),
    cudaStatus: (name: string) => sharedMemory.cudaStatus(name),
    registerCuda: (name: string, region: Parameters<typeof sharedMemory.registerCuda>[1]) =>
      sharedMemory.registerCuda(name, region),
    unregisterCuda: (name: string) => sharedMemory.unregisterCuda(name),
    settleRegions: () => sharedMemory.settleAll(),
  } as Methods;
}
