import type { LoadCarrier } from "../target/carrier.js";
import { LoadRequest } from "../target/load-request.js";
import { BackOff } from "./back-off.js";
import { concurrencyAt, countShare, type ThreadShare } from "./concurrency-target.js";
import { DeadlineWatch } from "./deadline-watch.js";
import { type Feeder, ScheduleFeeder, type SequenceStep } from "./feeder.js";
import { needsOneThread } from "./level-requests.js";
import type { LoadLevel } from "./load-level.js";
import type { LoadLoopParts, LoopWindow } from "./loop-parts.js";
import { openFeeder } from "./open-feeder.js";
import { RecordColumns } from "./record-columns.js";

/** Requests later than this after their slot count as delayed, as in perf_analyzer. */
const DELAYED_MS = 1;

/** Sends the share of one thread. */
export class LoadLoop {
  readonly #parts: LoadLoopParts;
  readonly #carrier: LoadCarrier;
  readonly #records: RecordColumns;
  readonly #backOff = new BackOff();
  readonly #requests: LoadRequest[] = [];
  readonly #spare: LoadRequest[] = [];
  readonly #deadlines: DeadlineWatch | undefined;
  #feeder: Feeder | undefined;
  /** Requests that may still be sent. */
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

  constructor(parts: LoadLoopParts) {
    this.#parts = parts;
    this.#records = new RecordColumns(parts.kept);
    this.#carrier = parts.openCarrier((request) => this.#ended(request));
    const { clock, timeoutMs } = parts;
    if (timeoutMs === undefined) return;
    this.#deadlines = new DeadlineWatch(clock, timeoutMs, this.#requests, (request, text) =>
      this.#carrier.cancel(request, text),
    );
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

  /** Sends by a level from `startAt` on. */
  begin(level: LoadLevel, startAt: number): void {
    this.#left = Number.POSITIVE_INFINITY;
    this.#start(level, startAt);
  }

  /** Sends this thread's share of `count` requests. Resolves when they have ended. Nothing may be in flight. */
  run(level: LoadLevel, count: number, startAt: number): Promise<void> {
    const { share } = this.#parts;
    if (needsOneThread(level) && share.index > 0) return Promise.resolve();
    const isClosedLoop = level.mode === "concurrency" || level.mode === "concurrency_ramp";
    this.#left = isClosedLoop
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

  take(): LoopWindow {
    const { bytesSent, bytesReceived } = this.#carrier;
    const window: LoopWindow = {
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
    this.#deadlines?.stop();
    await this.#carrier.close();
  }

  /** For feeders. */
  send(scheduled: number, index?: number, step?: SequenceStep): boolean {
    if (this.#left === 0) return false;
    const request = this.#fresh(scheduled);
    const { source, share } = this.#parts;
    if (!source.next(request, index ?? this.#chosen * share.count + share.index, this.#left)) {
      this.#spare.push(request);
      return false;
    }
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

  /** For feeders. */
  refuse(scheduled: number, index: number, text: string): void {
    if (this.#left === 0) return;
    const request = this.#fresh(scheduled);
    if (this.#parts.source.next(request, index, this.#left)) this.#parts.source.ended(request);
    this.#left--;
    request.sent = this.#parts.clock.now();
    request.end = request.sent;
    request.fail(text);
    this.#records.add(request);
    this.#spare.push(request);
    if (this.#left === 0) this.#finish();
  }

  /** For feeders. */
  setSequences(live: number): void {
    this.#parts.source.setSequences(live, true);
  }

  /** For feeders. */
  finished(): void {
    this.#finish();
  }

  #start(level: LoadLevel, startAt: number): void {
    const { share, source, sequences, serialSequences } = this.#parts;
    this.#feeder?.stop();
    this.#feeder = undefined;
    this.#isEnding = false;
    this.#period = level.mode === "periodic_concurrency" ? level.responses : 0;
    if (needsOneThread(level) && share.index > 0) return;
    const keepsConcurrency = level.mode === "concurrency" || level.mode === "concurrency_ramp";
    if (!keepsConcurrency) source.setSequences(sequences, serialSequences);
    this.#feeder = openFeeder(this, level, this.#parts, startAt);
    this.#feeder.start();
  }

  #finish(): void {
    this.#feeder?.stop();
    this.#feeder = undefined;
    this.#checkQuiet();
  }

  #fresh(scheduled: number): LoadRequest {
    const request = this.#spare.pop() ?? new LoadRequest();
    request.reset(scheduled, this.#number++, this.#parts.kept);
    if (this.#period > 0) {
      request.period = this.#period;
      request.onPeriod = this.#onPeriod;
    }
    return request;
  }

  #dispatch(request: LoadRequest): void {
    request.place = this.#requests.push(request) - 1;
    request.isDelayed = this.#parts.clock.now() - request.scheduled > DELAYED_MS;
    this.#deadlines?.sent();
    this.#carrier.send(request);
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
    this.#parts.source.ended(request);
    const isShort = request.responses < request.period;
    this.#feeder?.ended(request);
    this.#spare.push(request);
    if (isShort) this.#onPeriod();
    if (this.#isEnding) this.#endSequences();
    this.#checkQuiet();
  }

  #endSequences(): void {
    for (;;) {
      const request = this.#fresh(this.#parts.clock.now());
      if (!this.#parts.source.last(request)) {
        this.#spare.push(request);
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

/** Slots of a schedule with `count` slots that go to this thread. */
function roundRobinShare(count: number, { index, count: threads }: ThreadShare): number {
  return Math.floor((count - index - 1) / threads) + 1;
}
