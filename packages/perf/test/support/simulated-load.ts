import type { LoadGenerator } from "../../src/load/load-generator.js";
import { type LoadLevel, levelValue } from "../../src/load/load-level.js";
import type { LoadWindow } from "../../src/load/request-records.js";
import { type RequestRow, windowOf } from "./request-rows.js";
import type { VirtualTime } from "./virtual-time.js";

/** A server that runs one request after the other, in the order of their arrival. */
export interface SimulatedServer {
  /** Time in milliseconds that request number `i` runs, when it starts at `start`. */
  serviceMs(i: number, start: number): number;
  /** Text of the error of request number `i`, which fails at its end. */
  errorFor?(i: number): string | undefined;
}

/** Numbers in [0, 1) that are the same in each run. */
export function seededNumbers(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A generator whose requests and server exist on a virtual clock only. */
export class SimulatedLoad implements LoadGenerator {
  readonly levels: LoadLevel[] = [];
  /** Requests that the server has begun. */
  requestCount = 0;
  isClosed = false;
  readonly #clock: VirtualTime;
  readonly #server: SimulatedServer;
  readonly #random: () => number;
  #level: LoadLevel | undefined;
  /** Times at which clients send next: one client for each request in flight, or one for a schedule. */
  #sends: number[] = [];
  #freeAt = 0;
  #finished: RequestRow[] = [];
  #windowStart: number;

  constructor(clock: VirtualTime, server: SimulatedServer, seed = 1) {
    this.#clock = clock;
    this.#server = server;
    this.#random = seededNumbers(seed);
    this.#windowStart = clock.now();
  }

  async begin(level: LoadLevel): Promise<void> {
    this.levels.push(level);
    this.#simulateTo(this.#clock.now());
    const count = level.mode === "concurrency" ? level.value : 1;
    this.#level = level;
    this.#sends = Array.from({ length: count }, () => this.#clock.now());
  }

  async take(): Promise<LoadWindow> {
    const now = this.#clock.now();
    this.#simulateTo(now);
    const rows = this.#finished.filter(({ end }) => end <= now);
    this.#finished = this.#finished.filter(({ end }) => end > now);
    const start = this.#windowStart;
    this.#windowStart = now;
    return windowOf(start, now, rows);
  }

  async run(level: LoadLevel, count: number): Promise<LoadWindow> {
    await this.pause();
    await this.begin(level);
    for (let i = 0; i < count; i++) this.#simulateNext();
    this.#sends = [];
    return this.pause();
  }

  async pause(): Promise<LoadWindow> {
    this.#sends = [];
    for (const { end } of this.#finished) this.#clock.moveTo(end);
    return this.take();
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }

  #simulateTo(time: number): void {
    while (this.#sends.length > 0 && Math.min(...this.#sends) < time) this.#simulateNext();
  }

  #simulateNext(): void {
    const client = this.#sends.indexOf(Math.min(...this.#sends));
    const sent = this.#sends[client]!;
    const i = this.requestCount++;
    const start = Math.max(sent, this.#freeAt);
    const end = start + this.#server.serviceMs(i, start);
    this.#freeAt = end;
    this.#finished.push({ sent, end, error: this.#server.errorFor?.(i) });
    this.#sends[client] = this.#level?.mode === "concurrency" ? end : sent + this.#gapMs();
  }

  #gapMs(): number {
    const level = this.#level!;
    const mean = 1000 / levelValue(level);
    const isPoisson = "distribution" in level && level.distribution === "poisson";
    return isPoisson ? -Math.log(1 - this.#random()) * mean : mean;
  }
}
