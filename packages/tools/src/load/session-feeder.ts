import type { LoadRequest } from "../target/load-request.js";
import type { FedLoop, Feeder } from "./feeder.js";
import type { LoadClock, WakeUp } from "./load-clock.js";
import type { SessionConcurrencyLevel } from "./load-level.js";

/** A turn that may be sent. */
interface DueTurn {
  /** Index of its session. */
  readonly session: number;
  readonly turn: number;
  readonly scheduled: number;
}

/**
 * Keeps a number of sessions alive. The turns of a session follow each other: each one after the answer to the one
 * before, and the delay of that one. A session ends with its last turn, or with a turn that fails.
 */
export class SessionFeeder implements Feeder {
  readonly #loop: FedLoop;
  readonly #clock: LoadClock;
  readonly #level: SessionConcurrencyLevel;
  /** Turns that were sent, of each live session by its index. */
  readonly #live = new Map<number, number>();
  readonly #delays = new Map<number, WakeUp>();
  readonly #due: DueTurn[] = [];
  #begun = 0;
  #isSending = false;
  #isStopped = false;

  constructor(loop: FedLoop, clock: LoadClock, level: SessionConcurrencyLevel) {
    this.#loop = loop;
    this.#clock = clock;
    this.#level = level;
  }

  start(): void {
    for (let i = 0; i < this.#level.value; i++) this.#begin();
    this.#sendDue();
  }

  ended({ sequenceId, failure }: LoadRequest): void {
    const session = sequenceId - 1;
    const sent = this.#live.get(session);
    if (sent === undefined || this.#isStopped) return;
    const { turns } = this.#level.sessions[session]!;
    if (failure !== undefined || sent === turns.length) {
      this.#live.delete(session);
      this.#begin();
    } else this.#wait(session, sent, turns[sent - 1]!.delayMs);
    this.#sendDue();
  }

  stop(): void {
    this.#isStopped = true;
    for (const delay of this.#delays.values()) delay.cancel();
    this.#delays.clear();
    this.#due.length = 0;
  }

  #begin(): void {
    if (this.#begun === this.#level.sessions.length) return;
    const session = this.#begun++;
    this.#live.set(session, 0);
    this.#due.push({ session, turn: 0, scheduled: this.#clock.now() });
  }

  #wait(session: number, turn: number, delayMs: number): void {
    const scheduled = this.#clock.now() + delayMs;
    if (delayMs === 0) {
      this.#due.push({ session, turn, scheduled });
      return;
    }
    const delay = this.#clock.wakeAt(scheduled, () => {
      this.#delays.delete(session);
      this.#due.push({ session, turn, scheduled });
      this.#sendDue();
    });
    this.#delays.set(session, delay);
  }

  /** Requests may end while they are sent, so this is a loop and not a recursion. */
  #sendDue(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    for (let next = this.#due.shift(); next !== undefined; next = this.#due.shift()) {
      const { session, turn, scheduled } = next;
      const { turns } = this.#level.sessions[session]!;
      this.#live.set(session, turn + 1);
      this.#loop.send(scheduled, turns[turn]!.payload, {
        id: session + 1,
        isFirst: turn === 0,
        isLast: turn === turns.length - 1,
      });
    }
    this.#isSending = false;
    if (this.#live.size === 0 && !this.#isStopped) this.#loop.finished();
  }
}
