import { Worker } from "node:worker_threads";
import { takeLastDescriptors } from "../../files/last-descriptors.js";
import type { Channel, ChannelListener, OpenChannel } from "./channel.js";
import type { FromWorker, ToWorker } from "./messages.js";
import { ThreadEnding } from "./native-calls.js";
import { ownProgram } from "./own-program.js";
import { MOST_SPARE_THREADS, SpareThreads } from "./spare-threads.js";

const spares = new SpareThreads<WorkerThread>();

/** Milliseconds in which a spare thread ends by itself. Its imports take seconds on a busy machine. */
const RETIRES_WITHIN_MS = 60_000;

/** What a thread is started with. */
export interface ThreadData {
  readonly nativeCalls: Int32Array;
}

const NOBODY: ChannelListener = { message() {}, gone() {} };

/** Starts a worker thread. It shares the memory of this process, so buffers are transferred without a copy. */
export const openThread: OpenChannel = ({ heapLimitMb, reusable }, listener) => {
  const spare = reusable ? spares.take() : undefined;
  const thread = spare ?? new WorkerThread(heapLimitMb, reusable);
  thread.begin(listener);
  return thread;
};

/** Ensures this number of spare threads, which load everything that a program needs for any model. */
export function prepareThreads(entry: string, count: number): void {
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
  /** Program of the model that is loading. */
  #loading: string | undefined;
  #patience: NodeJS.Timeout | undefined;

  constructor(heapLimitMb: number | undefined, keeps: boolean) {
    this.#keeps = keeps;
    // A thread whose event loop gets only a part of its descriptors leaves them open.
    const giveBack = takeLastDescriptors();
    try {
      this.#worker = new Worker(ownProgram(new URL("./thread-main.js", import.meta.url)), {
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

  /** Makes the thread the worker of a model. */
  begin(listener: ChannelListener): void {
    this.listener = listener;
    this.#worker.ref();
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

  lowerPriority(): void {}

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
    this.#worker.unref();
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
