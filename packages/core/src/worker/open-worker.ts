import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { errorFor, type InstanceHosting, TritonError } from "@tritonjs/protocol";
import type { InputCheck } from "../instance/backend.js";
import { type Clock, quietClock, type Timer } from "../system/clock.js";
import { type HostPolicy, isPlaced, startBound } from "../system/host-policy.js";
import { startProcess, takeLastDescriptors } from "../system/start-process.js";
import {
  type Channel,
  type ChannelListener,
  type FromWorker,
  type OpenChannel,
  type ToWorker,
  unpackError,
} from "./messages.js";
import { ThreadEnding } from "./native-calls.js";

/** The program of a worker, and how it may be interrupted. */
export interface WorkerProgram {
  /** Module that exports `load(data, info)`. */
  readonly entry: URL;
  /** Argument of `load`; must survive structured cloning. */
  readonly data: unknown;
  /** False for native code: ending its thread would abort this process. */
  readonly interruptible: boolean;
  /**
   * True if it joins requests itself, unless they are joined by rows: a callback may want them one by one.
   * @default false: it gets them joined
   */
  readonly joins?: boolean;
  /**
   * True for a program that computes with tensors alone. It gets no properties of the requests but their rows, and gets
   * its next batch while it runs one.
   */
  readonly tensorsOnly?: boolean;
  /** True for a program that does not use the inputs of a batch once it has answered. @default false */
  readonly returnsInputs?: boolean;
  /** True for a program that leaves no state in its thread after it has closed a model. @default false */
  readonly reusesThread?: boolean;
  /** Time limit for loading in milliseconds, for programs that can be interrupted. @default no limit */
  readonly loadTimeoutMs?: number | undefined;
  /** Refuses inputs before they go to the worker. @default none is refused */
  readonly checkInput?: InputCheck;
}

export interface WorkerPlacement {
  /** `isolation` "process" for a child process, anything else for a thread. */
  readonly hosting?: InstanceHosting;
  readonly hostPolicy?: HostPolicy | undefined;
}

export function isolationOf({ hosting }: WorkerPlacement): "process" | "worker" {
  return hosting?.isolation === "process" ? "process" : "worker";
}

/**
 * True if the worker may be a thread that had another model, and may be kept for the next one. False if instances are
 * recycled or limited in memory, because their threads must not accumulate state, or bound to cores.
 */
function reuses({ reusesThread = false }: WorkerProgram, { hosting, hostPolicy }: WorkerPlacement): boolean {
  return (
    reusesThread &&
    !isPlaced(hostPolicy) &&
    hosting?.heapLimitMb === undefined &&
    hosting?.recycle === undefined
  );
}

/** Starts a worker for a program in the given placement: a thread, which may be a spare one, or a process. */
export function openWorker(
  program: WorkerProgram,
  placement: WorkerPlacement,
  listener: ChannelListener,
): Channel {
  const open = isolationOf(placement) === "process" ? openProcess : openThread;
  const { hosting, hostPolicy } = placement;
  return open(
    { heapLimitMb: hosting?.heapLimitMb, hostPolicy, reusable: reuses(program, placement) },
    listener,
  );
}

/** Starts threads ahead for the next workers, if these may be kept threads. */
export function prepareWorkers(program: WorkerProgram, placement: WorkerPlacement, count: number): void {
  if (isolationOf(placement) === "worker" && reuses(program, placement))
    prepareThreads(program.entry.href, count);
}

/**
 * A worker that opens a model before its configuration is complete, because the configuration is completed from the
 * open model. The first instance takes over the worker with the model in it.
 *
 * ```
 * opening --> open --take--> of the instance
 *    |          +---close--> closed
 *    +--> failed
 * ```
 */
export class OpenedWorker {
  /** Description from the open model. Rejects with the reason if it cannot be opened. */
  readonly description: Promise<unknown>;
  /** Undefined once the worker has ended or was taken by the instance. */
  #channel: Channel | undefined;
  #onGone: (() => void) | undefined;

  constructor(
    modelName: string,
    program: WorkerProgram,
    placement: WorkerPlacement,
    warn: (message: string) => void,
  ) {
    this.description = new Promise((resolve, reject) => {
      let failure: TritonError | undefined;
      const channel = openWorker(program, placement, {
        message: (message) => {
          if (message.type === "opened") resolve(message.description);
          else if (message.type === "warning") warn(message.message);
          else if (message.type === "failed") failure = unpackError(message.error);
        },
        gone: (how, fault) => {
          this.#channel = undefined;
          const why = fault === undefined ? how : `crashed: ${TritonError.from(fault).message}`;
          reject(
            failure ?? errorFor("WORKER_CRASHED", `cannot open model '${modelName}': its worker ${why}`),
          );
          this.#onGone?.();
        },
      });
      this.#channel = channel;
      channel.post({ type: "open", entry: program.entry.href, data: program.data }, []);
    });
  }

  /** Passes the worker on, to `load` the model; undefined if it has ended or was already taken. */
  take(listener: ChannelListener): Channel | undefined {
    const channel = this.#channel;
    this.#channel = undefined;
    if (channel === undefined) return undefined;
    channel.listener = listener;
    return channel;
  }

  /** Closes a model that no instance took. Resolves when the worker has closed it. */
  async close(): Promise<void> {
    const channel = this.#channel;
    if (channel === undefined) return;
    await new Promise<void>((resolve) => {
      this.#onGone = resolve;
      channel.finish();
    });
  }
}

/** Most spare threads. Each takes about 10 MB, and its start takes processor time from other work. */
const MOST_SPARE_THREADS = 4;

/** Number of threads started ahead: the default number of instances of a model. */
const STARTED_AHEAD = 2;

/** Milliseconds that a thread is kept: a repository that changes often changes again within this time. */
const KEPT_FOR_MS = 10_000;

/** Methods of a thread that {@link SpareThreads} needs. */
interface SpareThread {
  /** Ends the thread once nothing is loading in it. */
  retire(): void;
}

/**
 * Pool of threads that have closed a model or were started ahead, and wait a while for another model. The thread takes
 * most of the time that a small model needs to load: starting it, importing modules, loading ONNX Runtime.
 */
export class SpareThreads<Thread extends SpareThread> {
  /** Spare threads; the most recent one is last. */
  #threads: Thread[] = [];
  #timer: Timer | undefined;
  /** Number of threads in which a model is loading. */
  #loading = 0;
  #lastLoadAt = Number.NEGATIVE_INFINITY;

  /** @param clock with timers that do not keep the process alive */
  constructor(private readonly clock: Pick<Clock, "now" | "setTimer"> = quietClock) {}

  get count(): number {
    return this.#threads.length;
  }

  loadBegins(): void {
    this.#loading++;
  }

  /**
   * Records that a model has loaded in a thread, or failed to.
   *
   * @returns number of threads to start ahead. Loads that follow one another, unlike those at the start of a server,
   * are likely to be followed by another.
   */
  loadEnds(): number {
    if (--this.#loading > 0) return 0;
    const now = this.clock.now();
    const follows = now - this.#lastLoadAt < KEPT_FOR_MS;
    this.#lastLoadAt = now;
    return follows ? Math.max(0, STARTED_AHEAD - this.count) : 0;
  }

  /** Takes the most recent spare thread, whose memory is warm; undefined if there is none. */
  take(): Thread | undefined {
    return this.#threads.pop();
  }

  /** Keeps a thread that has closed a model; ends the oldest one if there are enough. */
  keep(thread: Thread): void {
    this.#threads.push(thread);
    if (this.#threads.length > MOST_SPARE_THREADS) this.#threads.shift()!.retire();
    this.#endLater();
  }

  /** Keeps a thread that has just been started; it is taken after all others. */
  add(thread: Thread): void {
    this.#threads.unshift(thread);
    this.#endLater();
  }

  forget(thread: Thread): void {
    this.#threads = this.#threads.filter((one) => one !== thread);
  }

  #endLater(): void {
    this.#timer?.cancel();
    this.#timer = this.clock.setTimer(KEPT_FOR_MS, () => {
      for (const thread of this.#threads.splice(0)) thread.retire();
    });
  }
}

const spares = new SpareThreads<WorkerThread>();

/** Milliseconds in which a spare thread ends by itself. Its imports take seconds on a busy machine. */
const RETIRES_WITHIN_MS = 60_000;

export interface ThreadData {
  readonly nativeCalls: Int32Array;
}

const NOBODY: ChannelListener = { message() {}, gone() {} };

/** Starts a worker thread. It shares the memory of this process, so buffers are transferred without a copy. */
const openThread: OpenChannel = ({ heapLimitMb, hostPolicy, reusable }, listener) => {
  const spare = reusable ? spares.take() : undefined;
  const thread = spare ?? new WorkerThread(heapLimitMb, reusable);
  if (isPlaced(hostPolicy)) thread.post({ type: "bind", hostPolicy: hostPolicy! }, []);
  thread.begin(listener);
  return thread;
};

/** Ensures this number of spare threads, which load everything that a program needs for any model. */
function prepareThreads(entry: string, count: number): void {
  for (let missing = Math.min(count, MOST_SPARE_THREADS) - spares.count; missing > 0; missing--) {
    const thread = new WorkerThread(undefined, true);
    thread.post({ type: "prepare", entry }, []);
    thread.rest();
    spares.add(thread);
  }
}

class WorkerThread implements Channel {
  readonly details = {};
  readonly #worker: Worker;
  readonly #ending = new ThreadEnding();
  /** True if the thread is kept after it closed its model. */
  readonly #keeps: boolean;
  listener: ChannelListener = NOBODY;
  #fault: unknown;
  #loading: string | undefined;
  #patience: NodeJS.Timeout | undefined;

  constructor(heapLimitMb: number | undefined, keeps: boolean) {
    this.#keeps = keeps;
    // A thread whose event loop gets only a part of its descriptors leaves them open.
    const giveBack = takeLastDescriptors();
    try {
      this.#worker = new Worker(ownProgram(new URL("./worker-main.js", import.meta.url)), {
        workerData: { nativeCalls: this.#ending.state } satisfies ThreadData,
        ...(heapLimitMb === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: heapLimitMb } }),
      });
    } catch (error) {
      giveBack();
      throw error;
    }
    this.#worker.once("online", giveBack);
    this.#worker.on("message", (message: FromWorker) => {
      if (message.type === "ready") this.#loadEnds();
      if (message.type === "free") this.#becomeSpare();
      else this.listener.message(message);
    });
    this.#worker.on("error", (error) => {
      this.#fault = error;
    });
    this.#worker.on("exit", (code) => {
      giveBack();
      clearTimeout(this.#patience);
      this.#ending.over();
      spares.forget(this);
      this.#loadEnds();
      this.listener.gone(`exited with code ${code}`, this.#fault);
    });
  }

  begin(listener: ChannelListener): void {
    this.listener = listener;
    this.ref();
  }

  ref(): void {
    this.#worker.ref();
  }

  unref(): void {
    this.#worker.unref();
  }

  post(message: ToWorker, transfer: ArrayBuffer[]): void {
    if (message.type === "open") this.#loadBegins(message.entry);
    else if (message.type === "load") this.#loadBegins(message.init.entry);
    this.#worker.postMessage(message, transfer);
  }

  finish(): void {
    this.post({ type: "stop", keep: this.#keeps }, []);
  }

  end(closeWithinMs: number | undefined): void {
    if (closeWithinMs === undefined) {
      this.kill();
      return;
    }
    this.post({ type: "stop" }, []);
    this.#patience = setTimeout(() => this.kill(), closeWithinMs);
  }

  kill(): void {
    this.#ending.begin(() => void this.#worker.terminate());
  }

  /** Lets the thread end by itself, once nothing is loading in it. */
  retire(): void {
    this.post({ type: "stop" }, []);
    this.#patience = setTimeout(() => this.kill(), RETIRES_WITHIN_MS).unref();
  }

  /** Makes the thread wait for another model, without keeping the process alive. */
  rest(): void {
    this.listener = NOBODY;
    this.unref();
  }

  #becomeSpare(): void {
    this.#loadEnds();
    const { listener } = this;
    this.rest();
    spares.keep(this);
    listener.gone("closed its model", undefined);
  }

  #loadBegins(entry: string): void {
    if (!this.#keeps || this.#loading !== undefined) return;
    this.#loading = entry;
    spares.loadBegins();
  }

  #loadEnds(): void {
    const entry = this.#loading;
    this.#loading = undefined;
    if (entry !== undefined) prepareThreads(entry, spares.count + spares.loadEnds());
  }
}

/** Last message of a child process that dies of an uncaught error. */
export interface ProcessFault {
  readonly type: "fault";
  readonly error: Parameters<typeof unpackError>[0];
}

/** Milliseconds that a process may take to flush its output and end, before it is killed. */
const END_WITHIN_MS = 1000;

/** Debugger options, which are not passed on: two debuggers cannot listen on one port. */
const DEBUGGING = /^--(inspect|debug)/;

/**
 * Starts a child process. Its memory is its own, and is returned to the system when it ends; its crash affects no other
 * process. Messages use Node's own channel, and are copied once on each side.
 */
const openProcess: OpenChannel = ({ heapLimitMb, hostPolicy }, listener) => {
  const main = ownProgram(new URL("./worker-main.js", import.meta.url));
  const execArgv = process.execArgv.filter((argument) => !DEBUGGING.test(argument));
  if (heapLimitMb !== undefined) execArgv.push(`--max-old-space-size=${heapLimitMb}`);
  const child = startBound(hostPolicy, () =>
    startProcess(() =>
      fork(main, [], {
        execArgv,
        serialization: "advanced",
        // It inherits our output streams, so its output cannot fill our memory.
        stdio: ["ignore", "inherit", "inherit", "ipc"],
      }),
    ),
  );
  const nice = hostPolicy?.nice;
  if (nice !== undefined && child.pid !== undefined) lowerPriority(child.pid, nice);
  let how: string | undefined;
  let fault: unknown;
  let gone = false;
  let patience: NodeJS.Timeout | undefined;
  const end = () => {
    // Its last messages may still arrive after it has ended.
    if (gone || how === undefined || child.connected) return;
    gone = true;
    clearTimeout(patience);
    channel.listener.gone(how, fault);
  };
  child.on("message", (message: FromWorker | ProcessFault) => {
    if (message.type === "fault") fault = unpackError(message.error);
    else channel.listener.message(message);
  });
  child.on("exit", (code, signal) => {
    how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    end();
  });
  child.on("disconnect", () => {
    // A process that closed the channel can receive no more messages.
    child.kill("SIGKILL");
    end();
  });
  child.on("error", (error) => {
    if (child.pid !== undefined) return;
    how = "could not be started";
    fault = error;
    end();
  });
  const post: Channel["post"] = (message) => {
    if (child.connected) child.send(message, ignoreFailure);
  };
  const channel: Channel = {
    details: { pid: String(child.pid) },
    listener,
    post,
    // In Bun, the channel has no handle of its own.
    ref: () => {
      child.ref();
      child.channel?.ref?.();
    },
    unref: () => {
      child.unref();
      child.channel?.unref?.();
    },
    finish: () => post({ type: "stop" }, []),
    end: (closeWithinMs = 0) => {
      if (child.connected) child.send({ type: "stop" } satisfies ToWorker, ignoreFailure);
      patience = setTimeout(() => child.kill("SIGKILL"), closeWithinMs + END_WITHIN_MS);
    },
    kill: () => void child.kill("SIGKILL"),
  };
  return channel;
};

/** Ignores a failed write: `disconnect` reports a broken channel. */
function ignoreFailure(): void {}

function lowerPriority(pid: number, nice: number): void {
  try {
    setPriority(pid, nice);
  } catch (error) {
    process.emitWarning(`cannot give a child process the priority ${nice}: ${(error as Error).message}`);
  }
}

/**
 * Returns the path of a program of this package that a worker runs.
 *
 * @param program its URL
 * @throws TritonError UNAVAILABLE if a bundler moved the code that looks for the program, so that it is not there
 */
export function ownProgram(program: URL): string {
  const path = fileURLToPath(program);
  if (!existsSync(path)) {
    throw errorFor(
      "PACKAGE_BUNDLED",
      `cannot start a worker: expected its program at ${path}, got no such file. A bundler joined @tritonjs/core to ` +
        "another file: make @tritonjs/* external in the bundler's options (esbuild: --external:@tritonjs/*, " +
        "Next.js: serverExternalPackages)",
    );
  }
  return path;
}
