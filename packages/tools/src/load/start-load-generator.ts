import type { DataSet } from "../data/data-set.js";
import { epochNow, epochOffset } from "../target/epoch-time.js";
import { type PreparedTarget, prepareTarget } from "../target/prepare-target.js";
import type { TargetOptions } from "../target/target-options.js";
import { checkLevel } from "./check-level.js";
import { shareOf } from "./concurrency-target.js";
import { joinedRecords } from "./joined-records.js";
import type { LoadGenerator } from "./load-generator.js";
import type { LoadLevel } from "./load-level.js";
import { checkLoadOptions, defaultThreads, type LoadOptions } from "./load-options.js";
import { LocalLoop, type LoopHandle, type ThreadWindow } from "./loop-handle.js";
import { type LoopPlan, openLoop, seedOfThread } from "./loop-plan.js";
import type { LoadWindow } from "./request-records.js";
import { checkIdRange, checkSequenceOptions, SEQUENCE_DEFAULTS, sequenceRules } from "./sequence-load.js";
import { closedError, ThreadLoop } from "./thread-loop.js";

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
  const { keepOutputs = false, keepResponses = keepOutputs } = options;
  const prepared = await prepareTarget(target, data, { keepOutputs, keepResponses });
  return new ThreadedGenerator(prepared, data, options);
}

class ThreadedGenerator implements LoadGenerator {
  readonly #prepared: PreparedTarget;
  readonly #options: LoadOptions;
  readonly #loops: readonly LoopHandle[];
  readonly #isSequenceModel: boolean;
  #windowStart = epochNow();
  #closing: Promise<void> | undefined;

  constructor(prepared: PreparedTarget, data: DataSet, options: LoadOptions) {
    this.#prepared = prepared;
    this.#options = options;
    this.#isSequenceModel = prepared.model?.isSequenceModel ?? false;
    const { sequences: { count: live = SEQUENCE_DEFAULTS.count } = {}, threads = defaultThreads() } = options;
    const { plan: carrier } = prepared;
    const isLocal = threads === 0 || carrier === undefined;
    const count = isLocal ? 1 : this.#isSequenceModel ? Math.min(threads, live) : threads;
    this.#loops = Array.from({ length: count }, (_, index) => {
      const plan = loopPlan(prepared, data, options, { index, count });
      if (!isLocal) return new ThreadLoop({ ...plan, carrier, epochOffset: epochOffset() });
      const seed = seedOfThread(plan.seed, plan.share);
      return new LocalLoop(openLoop(plan, (onEnd) => prepared.openCarrier(seed, onEnd)));
    });
  }

  async begin(level: LoadLevel): Promise<void> {
    this.#check(level);
    const startAt = this.#startTime();
    await Promise.all(this.#loops.map((loop) => loop.begin(level, startAt)));
  }

  async run(level: LoadLevel, count: number): Promise<LoadWindow> {
    this.#check(level);
    await this.pause();
    const startAt = this.#startTime();
    await Promise.all(this.#loops.map((loop) => loop.run(level, count, startAt)));
    return this.take();
  }

  async take(): Promise<LoadWindow> {
    this.#assertOpen();
    const windows = await Promise.all(this.#loops.map((loop) => loop.take()));
    const start = this.#windowStart;
    this.#windowStart = epochNow();
    return { start, end: this.#windowStart, ...joinedWindow(windows) };
  }

  async pause(): Promise<LoadWindow> {
    this.#assertOpen();
    await Promise.all(this.#loops.map((loop) => loop.playOut()));
    await Promise.all(this.#loops.map((loop) => loop.pause()));
    return this.take();
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all(this.#loops.map((loop) => loop.close())).then(() =>
      this.#prepared.release(),
    );
    return this.#closing;
  }

  #check(level: LoadLevel): void {
    this.#assertOpen();
    checkLevel(level);
    if (!this.#isSequenceModel) return;
    const { sequences = {} } = this.#options;
    const live =
      "value" in level && level.mode === "concurrency"
        ? level.value
        : (sequences.count ?? SEQUENCE_DEFAULTS.count);
    checkIdRange(sequences, level.mode === "concurrency_ramp" ? Math.max(level.from, level.to) : live);
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw closedError();
  }

  /** One thread starts at once; several start together. */
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
      eventLoopUtilization: Math.max(...windows.map(({ eventLoopUtilization }) => eventLoopUtilization)),
      delayed: sum(({ delayed }) => delayed),
      idle: 1 - sum(({ eventLoopUtilization }) => eventLoopUtilization) / windows.length,
      bytesSent: sum(({ bytesSent }) => bytesSent),
      bytesReceived: sum(({ bytesReceived }) => bytesReceived),
    },
  };
}
