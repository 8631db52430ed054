import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { errorFor, TritonError } from "@tritonjs/protocol";
import { invalidOption } from "../command/tool-errors.js";
import type { DataSet } from "../data/data-set.js";
import { epochNow, epochOffset } from "../target/carrier.js";
import { type PreparedTarget, prepareTarget } from "../target/prepare-target.js";
import type { TargetOptions } from "../target/target-options.js";
import { checkLevel, type LoadLevel, shareOf } from "./load-level.js";
import { LoadLoop, type LoopMethod, type LoopPlan, type ThreadPlan, type ThreadWindow } from "./load-loop.js";
import { joinedRecords, type LoadWindow } from "./request-records.js";
import {
  checkIdRange,
  checkSequenceOptions,
  SEQUENCE_DEFAULTS,
  type SequenceLoad,
  sequenceRules,
} from "./sequence-load.js";

/** Threads get a level before it starts, so that they start it together. */
const START_DELAY_MS = 5;

/**
 * Starts a load generator. It sends nothing before its first level.
 *
 * @throws TritonError INVALID_ARG for options and data that do not fit the target, and errors of the server that is
 * asked for the model.
 * @example
 * ```ts
 * const target = { kind: "http", url: "localhost:8000", modelName: "resnet" } as const;
 * const data = await loadDataSet(await readModel(target));
 * const generator = await startLoadGenerator(target, data);
 * await generator.begin({ mode: "concurrency", value: 8 });
 * await setTimeout(1000);
 * const { records } = await generator.take();
 * await generator.close();
 * ```
 */
export async function startLoadGenerator(
  target: TargetOptions,
  data: DataSet,
  options: LoadOptions = {},
): Promise<LoadGenerator> {
  checkLoadOptions(options);
  checkSequenceOptions(options.sequences ?? {});
  const prepared = await prepareTarget(target, data, options.keepOutputs ?? false);
  return new ThreadedGenerator(prepared, data, options);
}

class ThreadedGenerator implements LoadGenerator {
  readonly #loops: readonly (LoadLoop | ThreadLoop)[];
  readonly #isSequenceModel: boolean;
  #windowStart = epochNow();
  #closing: Promise<void> | undefined;

  constructor(
    private readonly prepared: PreparedTarget,
    data: DataSet,
    private readonly options: LoadOptions,
  ) {
    this.#isSequenceModel = prepared.model?.isSequenceModel ?? false;
    const { sequences: { count: live = SEQUENCE_DEFAULTS.count } = {}, threads = defaultThreads() } = options;
    const { plan: carrier } = prepared;
    const isLocal = threads === 0 || carrier === undefined;
    const count = isLocal ? 1 : this.#isSequenceModel ? Math.min(threads, live) : threads;
    this.#loops = Array.from({ length: count }, (_, index) => {
      const plan = loopPlan(prepared, data, options, { index, count });
      if (!isLocal) return new ThreadLoop({ ...plan, carrier, epochOffset: epochOffset() });
      return new LoadLoop(plan, (seed, onEnd) => prepared.openCarrier(seed, onEnd));
    });
  }

  async begin(level: LoadLevel): Promise<void> {
    this.#check(level);
    await this.#call("begin", level, this.#startTime());
  }

  async run(level: LoadLevel, count: number): Promise<LoadWindow> {
    this.#check(level);
    await this.pause();
    await this.#call("run", level, count, this.#startTime());
    return this.take();
  }

  async take(): Promise<LoadWindow> {
    const windows = await this.#call("take");
    const start = this.#windowStart;
    this.#windowStart = epochNow();
    return { start, end: this.#windowStart, ...joinedWindow(windows) };
  }

  async pause(): Promise<LoadWindow> {
    await this.#call("playOut");
    await this.#call("pause");
    return this.take();
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#loops.map((loop) => loop.close())).then(() =>
      this.prepared.release(),
    );
    return this.#closing;
  }

  async #call<Name extends LoopMethod>(name: Name, ...args: Parameters<LoadLoop[Name]>) {
    this.#assertOpen();
    const results = this.#loops.map((loop) =>
      loop instanceof ThreadLoop
        ? loop.call(name, args)
        : (loop[name] as (...given: unknown[]) => unknown)(...args),
    );
    return (await Promise.all(results)) as Awaited<ReturnType<LoadLoop[Name]>>[];
  }

  #check(level: LoadLevel): void {
    this.#assertOpen();
    checkLevel(level);
    if (!this.#isSequenceModel) return;
    const { sequences = {} } = this.options;
    const { count = SEQUENCE_DEFAULTS.count } = sequences;
    const live = level.mode === "concurrency" ? level.value : count;
    checkIdRange(sequences, level.mode === "concurrency_ramp" ? Math.max(level.from, level.to) : live);
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw closedError();
  }

  #startTime(): number {
    return epochNow() + (this.#loops.length > 1 ? START_DELAY_MS : 0);
  }
}

function loopPlan(
  { model, keepsOrder }: PreparedTarget,
  data: DataSet,
  options: LoadOptions,
  share: LoopPlan["share"],
): LoopPlan {
  const { seed = 0, timeoutMs, keepOutputs = false, keepResponses = keepOutputs, sequences = {} } = options;
  const kept = {
    responses: keepResponses,
    outputs: keepOutputs,
    tokens: keepResponses && data.kind === "openai",
  };
  const plan = { share, seed, payloads: data.payloads.length, timeoutMs, kept };
  if (!model?.isSequenceModel || data.kind === "openai") return plan;
  const { count: live = SEQUENCE_DEFAULTS.count, serial = !keepsOrder } = sequences;
  return {
    ...plan,
    sequences: {
      streams: data.streams,
      rules: sequenceRules(sequences, data.hasGivenSteps, share),
      live: shareOf(live, share),
      serial,
    },
  };
}

function joinedWindow(windows: readonly ThreadWindow[]): Pick<LoadWindow, "records" | "usage"> {
  const sum = (figure: (window: ThreadWindow) => number) =>
    windows.reduce((total, window) => total + figure(window), 0);
  return {
    records: joinedRecords(windows.map(({ records }) => records)),
    usage: {
      cpuMs: sum(({ cpuMs }) => cpuMs),
      cpuUtilization: Math.max(...windows.map(({ cpuUtilization }) => cpuUtilization)),
      eventLoopUtilization: Math.max(...windows.map((window) => window.eventLoopUtilization)),
      delayed: sum(({ delayed }) => delayed),
      idle: 1 - sum(({ eventLoopUtilization }) => eventLoopUtilization) / windows.length,
      bytesSent: sum(({ bytesSent }) => bytesSent),
      bytesReceived: sum(({ bytesReceived }) => bytesReceived),
    },
  };
}

/** Sends requests to one target by the level that is set, in threads of its own unless the target is in process. */
export interface LoadGenerator {
  /**
   * Sets the level, and sends from now on. Requests in flight run on, so load never pauses between levels.
   *
   * @throws TritonError INVALID_ARG for a level that cannot be sent, such as a rate of 0.
   */
  begin(level: LoadLevel): Promise<void>;
  /** Collects the requests that ended since the last call. Records are moved out, so memory stays bounded. */
  take(): Promise<LoadWindow>;
  /**
   * Pauses, then sends exactly `count` requests by a level, and resolves when all have ended. The window has only
   * these. The generator stays paused.
   */
  run(level: LoadLevel, count: number): Promise<LoadWindow>;
  /**
   * Stops sending and waits until the requests in flight have ended; ends open sequences. A fixed schedule is played to
   * its end before. Its window has the requests that ended since the last call of `take`.
   */
  pause(): Promise<LoadWindow>;
  /** Ends at once: cancels the requests in flight, and frees threads, connections and shared memory. */
  close(): Promise<void>;
}

/** Options of a load generator. */
export interface LoadOptions {
  /** Threads that send; 0 sends from this thread. @default half of the cores, at least 1 and at most 8 */
  readonly threads?: number;
  /** Seed of random gaps, sequences and fresh data. @default 0 */
  readonly seed?: number;
  /** Records the time of each response. @default false */
  readonly keepResponses?: boolean;
  /** Records the outputs of each response as JSON text; implies `keepResponses`. @default false */
  readonly keepOutputs?: boolean;
  /** Time limit of each request in milliseconds, from its scheduled time. @default none */
  readonly timeoutMs?: number;
  readonly sequences?: SequenceLoad;
}

/** One core sends what one to three others serve, so a machine that also runs the server keeps cores for it. */
export const defaultThreads = (cores = availableParallelism()): number =>
  Math.min(8, Math.max(1, Math.floor(cores / 2)));

function checkLoadOptions({ threads, seed, timeoutMs }: LoadOptions): void {
  if (threads !== undefined && !(Number.isSafeInteger(threads) && threads >= 0 && threads <= 256))
    throw invalidOption(`threads: expected a whole number from 0 to 256, got ${threads}`);
  if (seed !== undefined && !Number.isSafeInteger(seed))
    throw invalidOption(`seed: expected a whole number, got ${seed}`);
  if (timeoutMs !== undefined && !(timeoutMs > 0 && Number.isFinite(timeoutMs)))
    throw invalidOption(`request timeout: expected milliseconds above 0, got ${timeoutMs}`);
}

export interface LoopCall {
  readonly id: number;
  readonly name: LoopMethod;
  readonly args: readonly unknown[];
}

export interface LoopReply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: unknown;
}

class ThreadLoop {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  #next = 0;
  #fault: Error | undefined;

  constructor(plan: ThreadPlan) {
    this.#worker = new Worker(new URL("./load-thread.js", import.meta.url), { workerData: plan });
    this.#worker.on("message", ({ id, value, error }: LoopReply) => {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(error);
    });
    this.#worker.once("error", (cause) => this.#failed(cause));
    this.#worker.once("exit", (code) => this.#failed(new Error(`it exited with code ${code}`)));
  }

  call(name: LoopMethod, args: readonly unknown[]): Promise<unknown> {
    if (this.#fault !== undefined) return Promise.reject(this.#fault);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, name, args } satisfies LoopCall);
    });
  }

  async close(): Promise<void> {
    this.#rejectAll(closedError());
    await this.#worker.terminate();
  }

  #failed(cause: Error): void {
    const text = `a thread of the load generator failed: ${cause.message}`;
    this.#rejectAll(new TritonError("INTERNAL", text, { cause }));
  }

  #rejectAll(fault: Error): void {
    this.#fault ??= fault;
    for (const { reject } of this.#waiting.values()) reject(this.#fault);
    this.#waiting.clear();
  }
}

function closedError(): TritonError {
  return errorFor("CLIENT_CLOSED", "the load generator is closed");
}
