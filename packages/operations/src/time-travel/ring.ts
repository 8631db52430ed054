import type { ModelPlan, SchedulingSettings } from "@tritonjs/core/extension";
import { ENTRY, Tape } from "./tape.js";

/** Number of parts into which the time of a ring is divided. */
const PARTS = 4;

/**
 * The last seconds of a recording, in parts. The oldest part is dropped when the others are long enough.
 *
 * ```
 * dropped | part, replayable | part | part, grows
 *         |<------- at least the length ------->|
 * ```
 *
 * A replay needs a scheduler in the state that it had. So a part begins while nothing waits or runs, if such a moment
 * comes: most schedulers then are as they were new. Otherwise it begins in the middle, and can be explained but not
 * replayed.
 */
export class TapeRing {
  readonly rest = new ServerRest();
  readonly #parts: { readonly tape: Tape; readonly beganMs: number }[] = [];

  constructor(
    private readonly lengthMs: number,
    private readonly maxBytes: number,
  ) {}

  get byteLength(): number {
    return this.#parts.reduce((sum, { tape }) => sum + tape.byteLength, 0);
  }

  /**
   * Decides whether a new part begins before the next arrival.
   *
   * @param isBetween false within a call of a scheduler or a model
   */
  next(now: number, isBetween: boolean): "none" | "replayable" | "middle" {
    const last = this.#parts.at(-1);
    if (last === undefined) return "none";
    const spent = Math.max((now - last.beganMs) / this.lengthMs, last.tape.byteLength / this.maxBytes);
    if (spent < 1 / PARTS) return "none";
    if (isBetween && this.rest.isNow) return "replayable";
    return this.rest.mayCome && spent < 1 / 2 ? "none" : "middle";
  }

  add(tape: Tape, beganMs: number): void {
    const parts = this.#parts;
    parts.push({ tape, beganMs });
    const isEnough = () => parts.length > 1 && parts[1]!.beganMs <= beganMs - this.lengthMs;
    while (isEnough() || (parts.length > 1 && this.byteLength > this.maxBytes)) parts.shift();
  }

  /** All parts as one recording. */
  joined(): Tape {
    const [first] = this.#parts;
    const whole = new Tape(first!.tape.about, first!.tape.models);
    for (const { tape } of this.#parts) whole.append(tape);
    return whole;
  }
}

/** Knows when nothing waits or runs in a server, and its schedulers have kept nothing of what they did. */
class ServerRest {
  /** False if a scheduler learns, or has open sequences, or if instances have come or gone. */
  mayCome = true;
  /** Timers and deferred calls to come. */
  pending = 0;
  readonly loaded = new Set<number>();
  readonly #open = new Set<number>();
  readonly #down = new Set<string>();
  #running = 0;

  get isNow(): boolean {
    return (
      this.mayCome &&
      this.pending === 0 &&
      this.#running === 0 &&
      this.#open.size === 0 &&
      this.#down.size === 0
    );
  }

  server({ rateLimit, holdUntil, backlogHoldUntil }: SchedulingSettings): void {
    if (rateLimit !== "off" || holdUntil > 0 || backlogHoldUntil > 0) this.mayCome = false;
  }

  model({ config, batcher }: ModelPlan): void {
    if (batcher !== undefined || config.sequenceBatching !== undefined) this.mayCome = false;
  }

  arrived(request: number): void {
    this.#open.add(request);
  }

  started(): void {
    this.#running++;
  }

  happened(kind: number, model: number, first: number, second: number): void {
    if (kind === ENTRY.settled || kind === ENTRY.refused) this.#open.delete(first);
    else if (kind === ENTRY.ended) this.#running--;
    else if (kind === ENTRY.loaded) this.loaded.add(model);
    else if (kind === ENTRY.stop) this.loaded.delete(model);
    else if (kind === ENTRY.join || kind === ENTRY.retire) this.mayCome = false;
    else if (kind === ENTRY.health) {
      const instance = `${model} ${first}`;
      if (second === 1) this.#down.delete(instance);
      else this.#down.add(instance);
    }
  }
}
