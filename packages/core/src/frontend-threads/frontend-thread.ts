import { MessageChannel, Worker } from "node:worker_threads";
import { TritonError } from "@tritonjs/protocol";
import type { FrontendAddress, ThreadedFrontend } from "../frontend/serve-frontends.js";
import type { LogChanges, LogSubject } from "../observe/log.js";
import type { TraceChanges } from "../observe/trace-settings.js";
import { MemoryUsage } from "../request/request-memory.js";
import type { AuthenticationRequest } from "../service/access-control.js";
import type { InferenceService } from "../service/inference-service.js";
import type { ServiceChange } from "../service/service-watch.js";
import { RestartPause } from "../worker/restarts.js";
import { Control, type FrontendThreadData, type ServiceData } from "./control.js";
import { EngineRequests, type SentArrival, type ServiceState } from "./engine-requests.js";
import { createRing } from "./ring.js";
import { ThreadLink } from "./thread-link.js";

/** Milliseconds after which a thread that still runs has not failed in a row. */
const STEADY_AFTER_MS = 60_000;

/** Milliseconds that a thread has to end by itself. */
const END_WITHIN_MS = 1000;

/**
 * Most megabytes of the young generation of a thread's heap, twice the default. With less, streams of gRPC outlive two
 * collections and are copied to the old generation, which took about a tenth of the CPU time of a call.
 */
const YOUNG_GENERATION_MB = 96;

/** Shared by all threads of a server. */
interface ThreadOwner {
  readonly service: InferenceService;
  readonly state: ServiceState;
  /** The parts of {@link ServiceData} that are the same for all threads. */
  readonly data: Omit<ServiceData, "memoryRow" | "state">;
}

/** A thread that runs frontends. If it ends by itself, its requests are cancelled and it is started again. */
export class FrontendThread {
  readonly #owner: ThreadOwner;
  /** Row of the memory of its requests; the engine has row 0. */
  readonly #row: number;
  /** The frontends that it runs, by name. */
  readonly #frontends = new Map<string, ThreadedFrontend>();
  #run: Run;
  #startedAt = performance.now();
  readonly #pause = new RestartPause();
  #restart: NodeJS.Timeout | undefined;
  #ending = false;

  constructor(owner: ThreadOwner, row: number) {
    this.#owner = owner;
    this.#row = row;
    this.#run = this.#start();
  }

  /** Number of the thread in messages. */
  get number(): number {
    return this.#row;
  }

  /** Id of the present worker. */
  get threadId(): number {
    return this.#run.worker.threadId;
  }

  /**
   * Opens a frontend.
   *
   * @param keep whether the thread opens it again after a restart
   * @throws TritonError UNAVAILABLE if the port cannot be used
   */
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

  /** Ends the thread. */
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
    const run = new Run(this.#owner, this.#row);
    this.#startedAt = performance.now();
    void run.ended.then((cause) => this.#ended(cause));
    return run;
  }

  #ended(cause: string): void {
    MemoryUsage.end(this.#owner.data.memoryRows, this.#row);
    this.#owner.service.sharedMemory.settleAll();
    if (this.#ending) return;
    if (performance.now() - this.#startedAt > STEADY_AFTER_MS) this.#pause.reset();
    const delayMs = this.#pause.next();
    this.#owner.service.log.error(
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
        this.#owner.service.log.error(`frontend thread ${this.number} cannot open ${name} again: ${message}`);
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

  constructor({ service, state, data }: ThreadOwner, row: number) {
    const rings = [createRing(), createRing()] as const;
    const memory = new MessageChannel();
    const messages = new MessageChannel();
    const signals = new SharedArrayBuffer(4);
    const requests = new EngineRequests(service, state, () => link);
    const methods = serviceCalls(service, requests);
    const control = new Control(
      messages.port1,
      signals,
      {
        wake: () => link.wake(),
        change: () => {},
        answer: (method, args) => methods[method]!(...(args as never[])),
      },
      true,
    );
    const link: ThreadLink = new ThreadLink(
      { incoming: rings[0], outgoing: rings[1], memory: memory.port1 },
      {
        wakeOther: () => control.wakeOther(),
        frame: (frame) => requests.frame(frame),
        drained: () => requests.drained(),
      },
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
        control.close(
          new TritonError("UNAVAILABLE", "the frontend thread has ended", { reason: "SERVER_STOPPING" }),
        );
        requests.close();
        resolve(cause === "" ? `exit code ${code}` : cause);
      });
    });
  }
}

/** A request to authenticate. Headers cannot be cloned, so they are a list. */
export type ClonedAuthenticationRequest = Omit<AuthenticationRequest, "headers"> & {
  readonly headers: readonly (readonly [string, string])[];
};

/** Methods of the service that threads call as they are. */
const FORWARDED = [
  "checkReady",
  "checkModelReady",
  "modelReadiness",
  "modelConfig",
  "statistics",
  "queue",
  "loadReport",
  "repositoryIndex",
  "loadModel",
  "unloadModel",
  "registerModelRepository",
  "unregisterModelRepository",
  "metrics",
  "metricsFor",
] as const satisfies readonly (keyof InferenceService)[];

/** A method of the service that threads call as it is. */
export type ForwardedMethod = (typeof FORWARDED)[number];

type Methods = Readonly<Record<string, (...args: never[]) => unknown>>;

/** The calls of a thread other than requests for models. */
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
    settleRegions: () => sharedMemory.settleAll(),
  } as Methods;
}
