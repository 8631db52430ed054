import { readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";
import type { PayloadStream } from "../data/data-set.js";
import { Random } from "../data/random.js";
import { type EndListener, type LoadCarrier, LoadRequest } from "../target/carrier.js";
import type { RemoteCarrierPlan } from "../target/open-carrier.js";
import {
  type Feeder,
  openFeeder,
  realLoadClock,
  ScheduleFeeder,
  type SequenceStep,
  type WakeUp,
  waitedInTurnsMs,
} from "./feeder.js";
import {
  type ConcurrencyGoal,
  concurrencyAt,
  countShare,
  type LoadLevel,
  needsOneThread,
  type ThreadShare,
} from "./load-level.js";
import { RecordColumns, type RequestRecords, type ResponseRecording } from "./request-records.js";
import { PlainSource, type RequestSource, type SequenceRules, SequenceSource } from "./sequence-load.js";

/** Requests later than this after their slot count as delayed, as in perf_analyzer. */
const DELAYED_MS = 1;

export class LoadLoop {
  readonly #source: RequestSource;
  readonly #carrier: LoadCarrier;
  readonly #records: RecordColumns;
  readonly #backOff = new BackOff();
  readonly #usage = new ThreadUsage();
  readonly #requests: LoadRequest[] = [];
  #lookAtDeadlines: WakeUp | undefined;
  #feeder: Feeder | undefined;
  #left = Number.POSITIVE_INFINITY;
  /** Requests whose payload this thread has chosen itself. */
  #chosen = 0;
  #number = 0;
  #delayed = 0;
  #bytesSent = 0;
  #bytesReceived = 0;
  /** Responses of a request for which the feeder waits; 0 for none. */
  #period = 0;
  readonly #onPeriod = (): void => this.#feeder?.reached?.();
  #isEnding = false;
  #onQuiet: (() => void)[] = [];

  /** @param openCarrier opens the carrier of a seed, with the loop's listener */
  constructor(
    private readonly plan: LoopPlan,
    openCarrier: (seed: number, onEnd: EndListener) => LoadCarrier,
    private readonly clock = realLoadClock,
  ) {
    const { seed, share, payloads, sequences, kept } = plan;
    // Seeds of threads differ, so that their data does; the schedule has one seed for all.
    const ownSeed = seed + 0x9e37_79b9 * share.index;
    this.#source =
      sequences === undefined
        ? new PlainSource(payloads)
        : new SequenceSource(sequences.streams, sequences.rules, new Random(ownSeed));
    this.#records = new RecordColumns(kept);
    this.#carrier = openCarrier(ownSeed, (request) => this.#ended(request));
  }

  get inFlight(): number {
    return this.#requests.length;
  }

  get blockedUntil(): number {
    return this.#backOff.until;
  }

  get blockedBy(): string {
    return this.#backOff.reason;
  }

  begin(level: LoadLevel, startAt: number): void {
    this.#left = Number.POSITIVE_INFINITY;
    this.#start(level, startAt);
  }

  /** Sends this thread's share of `count` requests. Resolves when they have ended. Nothing may be in flight. */
  run(level: LoadLevel, count: number, startAt: number): Promise<void> {
    const { share } = this.plan;
    if (needsOneThread(level) && share.index > 0) return Promise.resolve();
    this.#left = isClosedLoop(level)
      ? countShare(count, concurrencyAt(level, Number.POSITIVE_INFINITY), share)
      : needsOneThread(level)
        ? count
        : roundRobinShare(count, share);
    if (this.#left === 0) return Promise.resolve();
    this.#start(level, startAt);
    return this.#quiet();
  }

  /** Stops sending. Resolves when nothing is in flight, and all sequences have ended. */
  pause(): Promise<void> {
    this.#feeder?.stop();
    this.#feeder = undefined;
    this.#isEnding = true;
    this.#left = Number.POSITIVE_INFINITY;
    this.#endSequences();
    return this.#quiet();
  }

  /** Lets a fixed schedule play to its end. Resolves at once for other levels. */
  async playOut(): Promise<void> {
    if (this.#feeder instanceof ScheduleFeeder && this.#feeder.endsItself) await this.#quiet();
  }

  take(): ThreadWindow {
    const { bytesSent, bytesReceived } = this.#carrier;
    const window: ThreadWindow = {
      ...this.#usage.take(),
      records: this.#records.take(),
      delayed: this.#delayed,
      bytesSent: bytesSent - this.#bytesSent,
      bytesReceived: bytesReceived - this.#bytesReceived,
    };
    this.#bytesSent = bytesSent;
    this.#bytesReceived = bytesReceived;
    this.#delayed = 0;
    return window;
  }

  async close(): Promise<void> {
    this.#feeder?.stop();
    this.#feeder = undefined;
    this.#lookAtDeadlines?.cancel();
    await this.#carrier.close();
  }

  send(scheduled: number, index?: number, step?: SequenceStep): boolean {
    if (this.#left === 0) return false;
    const request = this.#fresh(scheduled);
    const { share } = this.plan;
    if (!this.#source.next(request, index ?? this.#chosen * share.count + share.index, this.#left))
      return false;
    if (index === undefined) this.#chosen++;
    if (step !== undefined) {
      request.sequenceId = step.id;
      request.sequenceStart = step.isFirst;
      request.sequenceEnd = step.isLast;
    }
    this.#left--;
    this.#dispatch(request);
    if (this.#left === 0) this.#finish();
    return true;
  }

  refuse(scheduled: number, index: number, text: string): void {
    if (this.#left === 0) return;
    const request = this.#fresh(scheduled);
    if (this.#source.next(request, index, this.#left)) this.#source.ended(request);
    this.#left--;
    request.sent = this.clock.now();
    request.end = request.sent;
    request.fail(text);
    this.#records.add(request);
    if (this.#left === 0) this.#finish();
  }

  setSequences(live: number): void {
    this.#source.setSequences(live, true);
  }

  finished(): void {
    this.#finish();
  }

  #start(level: LoadLevel, startAt: number): void {
    const { share, seed, sequences } = this.plan;
    this.#feeder?.stop();
    this.#feeder = undefined;
    this.#isEnding = false;
    this.#period = level.mode === "periodic_concurrency" ? level.responses : 0;
    if (needsOneThread(level) && share.index > 0) return;
    if (!isClosedLoop(level)) this.#source.setSequences(sequences?.live ?? 0, sequences?.serial ?? true);
    this.#feeder = openFeeder(this, level, { clock: this.clock, share, seed }, startAt);
    this.#feeder.start();
  }

  #finish(): void {
    this.#feeder?.stop();
    this.#feeder = undefined;
    this.#checkQuiet();
  }

  #fresh(scheduled: number): LoadRequest {
    const request = new LoadRequest(scheduled, this.#number++, this.plan.kept.responses);
    if (this.#period > 0) {
      request.period = this.#period;
      request.onPeriod = this.#onPeriod;
    }
    return request;
  }

  #dispatch(request: LoadRequest): void {
    request.place = this.#requests.push(request) - 1;
    request.isDelayed = this.clock.now() - request.scheduled > DELAYED_MS;
    this.#watchDeadlines();
    this.#carrier.send(request);
  }

  /** Cancels requests past their deadline, with one timer for all of them. */
  #watchDeadlines(): void {
    const { timeoutMs } = this.plan;
    if (timeoutMs === undefined || this.#lookAtDeadlines !== undefined || this.inFlight === 0) return;
    const everyMs = Math.min(LONGEST_INTERVAL_MS, Math.max(2, timeoutMs / 20));
    this.#lookAtDeadlines = this.clock.wakeAt(this.clock.now() + everyMs, () => {
      this.#lookAtDeadlines = undefined;
      const latest = this.clock.now() - timeoutMs;
      for (const request of [...this.#requests])
        if (request.scheduled <= latest) this.#carrier.cancel(request, `no answer within ${timeoutMs} ms`);
      this.#watchDeadlines();
    });
  }

  #ended(request: LoadRequest): void {
    const last = this.#requests.pop()!;
    if (last !== request) {
      this.#requests[request.place] = last;
      last.place = request.place;
    }
    if (request.isConnectionLost) this.#backOff.failed(request.end, request.failure ?? "");
    else if (request.failure === undefined) this.#backOff.succeeded();
    // Without a server, requests are late because of the server.
    if (request.isDelayed && !request.isConnectionLost) this.#delayed++;
    this.#records.add(request);
    this.#source.ended(request);
    const isShort = request.responses < request.period;
    this.#feeder?.ended(request);
    if (isShort) this.#onPeriod();
    if (this.#isEnding) this.#endSequences();
    this.#checkQuiet();
  }

  #endSequences(): void {
    for (;;) {
      const request = this.#fresh(this.clock.now());
      if (!this.#source.last(request)) {
        return;
      }
      this.#dispatch(request);
    }
  }

  #quiet(): Promise<void> {
    return new Promise((resolve) => {
      this.#onQuiet.push(resolve);
      this.#checkQuiet();
    });
  }

  #checkQuiet(): void {
    if (this.#feeder !== undefined || this.#requests.length > 0) return;
    for (const resolve of this.#onQuiet.splice(0)) resolve();
  }
}

function isClosedLoop(level: LoadLevel): level is ConcurrencyGoal {
  return level.mode === "concurrency" || level.mode === "concurrency_ramp";
}

function roundRobinShare(count: number, { index, count: threads }: ThreadShare): number {
  return Math.floor((count - index - 1) / threads) + 1;
}

/** Share of one thread. It survives structured cloning. */
export interface LoopPlan {
  readonly share: ThreadShare;
  readonly seed: number;
  readonly payloads: number;
  /** Only for sequence models. */
  readonly sequences?: {
    readonly streams: readonly PayloadStream[];
    readonly rules: SequenceRules;
    readonly live: number;
    readonly serial: boolean;
  };
  readonly timeoutMs?: number;
  readonly kept: ResponseRecording;
}

export interface ThreadPlan extends LoopPlan {
  readonly carrier: RemoteCarrierPlan;
  /** See `agreeOnTime`. */
  readonly epochOffset: number;
}

export interface ThreadWindow {
  readonly records: RequestRecords;
  /** Requests that ended here and were sent late, without those that found no connection. */
  readonly delayed: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  readonly cpuMs: number;
  /** CPU time as a share of the window, 0 to 1. */
  readonly cpuUtilization: number;
  readonly eventLoopUtilization: number;
}

/** Methods of a loop that a generator calls, in this thread or in another one. */
export type LoopMethod = "begin" | "run" | "pause" | "playOut" | "take";

/** Measures the CPU that this thread uses, without the wait for the slots of a schedule. */
class ThreadUsage {
  #cpuMs = threadCpuMs();
  #takenAt = performance.now();
  #utilization = performance.eventLoopUtilization();
  #waitedMs = waitedInTurnsMs();

  take(): Pick<ThreadWindow, "cpuMs" | "cpuUtilization" | "eventLoopUtilization"> {
    const cpuMs = threadCpuMs();
    const now = performance.now();
    const utilization = performance.eventLoopUtilization();
    const waitedMs = waitedInTurnsMs();
    const { active, idle } = performance.eventLoopUtilization(utilization, this.#utilization);
    const busyMs = Math.max(0, active - (waitedMs - this.#waitedMs));
    const usedMs = Math.max(0, cpuMs - this.#cpuMs - (waitedMs - this.#waitedMs));
    const passedMs = now - this.#takenAt;
    this.#waitedMs = waitedMs;
    this.#cpuMs = cpuMs;
    this.#takenAt = now;
    this.#utilization = utilization;
    return {
      cpuMs: usedMs,
      cpuUtilization: passedMs > 0 ? Math.min(1, usedMs / passedMs) : 0,
      eventLoopUtilization: active + idle > 0 ? Math.min(1, busyMs / (active + idle)) : 0,
    };
  }
}

/** Looks at the deadlines of requests in flight at least this often, in milliseconds. */
const LONGEST_INTERVAL_MS = 250;

const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 1000;

/**
 * Pauses of a loop that cannot reach its server: they double from 10 ms to 1 s, and end with the first success. Without
 * them, refused connections would be tried as fast as the machine can.
 */
class BackOff {
  /** Requests are not sent before this time. */
  until = Number.NEGATIVE_INFINITY;
  reason = "";
  #nextMs = FIRST_PAUSE_MS;

  failed(now: number, reason: string): void {
    this.reason = reason;
    // The other requests that were in flight fail with the same cause.
    if (now < this.until) return;
    this.until = now + this.#nextMs;
    this.#nextMs = Math.min(LONGEST_PAUSE_MS, 2 * this.#nextMs);
  }

  succeeded(): void {
    this.until = Number.NEGATIVE_INFINITY;
    this.#nextMs = FIRST_PAUSE_MS;
  }
}

/**
 * CPU time of this thread in milliseconds. Node has it from version 24 on, and Linux for every version. Elsewhere it
 * is the time for which the event loop was busy.
 */
export function threadCpuMs(): number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };
  if (threadCpuUsage !== undefined) {
    const { user, system } = threadCpuUsage.call(process);
    return (user + system) / 1000;
  }
  return linuxCpuMs() ?? performance.eventLoopUtilization().active;
}

/** The first number of the file is nanoseconds on a CPU. */
function linuxCpuMs(): number | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const [nanoseconds = ""] = readFileSync("/proc/thread-self/schedstat", "latin1").split(" ");
    const ms = Number(nanoseconds) / 1e6;
    return ms > 0 ? ms : undefined;
  } catch {
    return undefined;
  }
}
