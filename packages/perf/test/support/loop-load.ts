import type { LoadClock, WakeUp } from "../../src/load/feeder.js";
import type { LoadGenerator } from "../../src/load/load-generator.js";
import type { LoadLevel } from "../../src/load/load-level.js";
import { LoadLoop } from "../../src/load/load-loop.js";
import type { LoadWindow } from "../../src/load/request-records.js";
import type { MeasureClock } from "../../src/measure/measure-level.js";
import type { LoadRequest } from "../../src/target/carrier.js";
import { IDLE_USAGE } from "./request-rows.js";
import type { SimulatedServer } from "./simulated-load.js";

interface Alarm {
  readonly time: number;
  readonly run: () => void;
}

/** A clock for a loop and its measurement. Sleeping runs the timers of that time at once. */
export class LoopTime implements LoadClock, MeasureClock {
  #now = 1_000_000;
  /** The first one is due last. */
  readonly #alarms: Alarm[] = [];

  now(): number {
    return this.#now;
  }

  wakeAt(time: number, run: () => void): WakeUp {
    const alarm = { time: Math.max(time, this.#now), run };
    let place = this.#alarms.length;
    while (place > 0 && this.#alarms[place - 1]!.time <= alarm.time) place--;
    this.#alarms.splice(place, 0, alarm);
    return {
      cancel: () => {
        const at = this.#alarms.indexOf(alarm);
        if (at >= 0) this.#alarms.splice(at, 1);
      },
    };
  }

  /** Runs the next timer. False if there is none until `end`. */
  step(end = Number.POSITIVE_INFINITY): boolean {
    const next = this.#alarms.at(-1);
    if (next === undefined || next.time > end) return false;
    this.#alarms.pop();
    this.#now = next.time;
    next.run();
    return true;
  }

  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    const end = this.#now + ms;
    for (let steps = 0; ; steps++) {
      // Promises that a timer has resolved may abort the sleep, or set timers.
      if (steps % TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      if (signal.aborted || !this.step(end)) break;
    }
    if (!signal.aborted) this.#now = end;
  }
}

/** Timers between two turns of the event loop. */
const TURN = 500;

/** The project's loop on a virtual clock, with a server that runs one request after the other. */
export class LoopLoad implements LoadGenerator {
  readonly levels: LoadLevel[] = [];
  /** Times of all sends, from the start. */
  readonly sentAt: number[] = [];
  /** Most requests in flight, by the second of the send. */
  readonly mostInFlight: number[] = [];
  readonly loop: LoadLoop;
  readonly #clock: LoopTime;
  readonly #server: SimulatedServer;
  readonly #startedAt: number;
  #windowStart: number;
  /** Requests that the server has, the running one first. */
  readonly #queue: LoadRequest[] = [];
  #begun = 0;
  #onEnd: (request: LoadRequest) => void = () => {};

  constructor(clock: LoopTime, server: SimulatedServer, seed = 0) {
    this.#clock = clock;
    this.#server = server;
    this.#startedAt = clock.now();
    this.#windowStart = clock.now();
    const kept = { responses: false, outputs: false, tokens: false };
    this.loop = new LoadLoop(
      { share: { index: 0, count: 1 }, seed, payloads: 100, kept },
      (_, onEnd) => {
        this.#onEnd = onEnd;
        return {
          bytesSent: 0,
          bytesReceived: 0,
          send: (request) => this.#send(request),
          cancel: () => {},
          close: () => {},
        };
      },
      clock,
    );
  }

  async begin(level: LoadLevel): Promise<void> {
    this.levels.push(level);
    this.loop.begin(level, this.#clock.now());
  }

  async take(): Promise<LoadWindow> {
    const { records, delayed } = this.loop.take();
    const start = this.#windowStart;
    this.#windowStart = this.#clock.now();
    return { start, end: this.#windowStart, records, usage: { ...IDLE_USAGE, delayed } };
  }

  async run(level: LoadLevel, count: number): Promise<LoadWindow> {
    await this.pause();
    this.levels.push(level);
    return this.#afterwards(this.loop.run(level, count, this.#clock.now()));
  }

  pause(): Promise<LoadWindow> {
    return this.#afterwards(this.loop.pause());
  }

  close(): Promise<void> {
    return this.loop.close();
  }

  /** Moves the clock until a call of the loop has ended. */
  async #afterwards(call: Promise<void>): Promise<LoadWindow> {
    let hasEnded = false;
    void call.then(() => {
      hasEnded = true;
    });
    await Promise.resolve();
    while (!hasEnded && this.#clock.step()) await Promise.resolve();
    await call;
    return this.take();
  }

  #send(request: LoadRequest): void {
    request.sent = this.#clock.now();
    request.sendEnd = request.sent;
    const elapsed = request.sent - this.#startedAt;
    this.sentAt.push(elapsed);
    const second = Math.floor(elapsed / 1000);
    this.mostInFlight[second] = Math.max(this.mostInFlight[second] ?? 0, this.loop.inFlight);
    if (this.#queue.push(request) === 1) this.#runNext();
  }

  #runNext(): void {
    const i = this.#begun++;
    const now = this.#clock.now();
    this.#clock.wakeAt(now + this.#server.serviceMs(i, now), () => {
      const request = this.#queue.shift()!;
      request.end = this.#clock.now();
      const error = this.#server.errorFor?.(i);
      if (error === undefined) request.responded(request.end);
      else request.fail(error);
      if (this.#queue.length > 0) this.#runNext();
      this.#onEnd(request);
    });
  }
}
