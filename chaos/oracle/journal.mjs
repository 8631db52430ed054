import { now } from "../clock.mjs";

/** An answer that is not the one that the model computes. */
export class WrongAnswer extends Error {}

/** A client that left before its answer was complete, on purpose. */
export const LEFT = Symbol("left");

/** Milliseconds after which a request that has not settled is a fault. A busy machine needs a part of it. */
export const SETTLES_WITHIN_MS = 180_000;

/**
 * Everything that the clients saw: how many requests each protocol and model had, and each request that did not end
 * with the right answer.
 */
export class Journal {
  /** Requests by protocol: `{ sent, right, failed, left }`. */
  protocols = new Map();
  /** The same by server and model. */
  models = new Map();
  /** Requests that failed: `{ protocol, server, model, code, text, startedAt, endedAt }`. */
  failures = [];
  /** Requests whose end is wrong whatever happened. */
  faults = [];
  #open = new Set();

  /** Requests in flight. */
  get openCount() {
    return this.#open.size;
  }

  /**
   * Sends a request and records how it ends.
   *
   * @param about `{ protocol, server, model }`, and `since` when failures may come from before this request
   * @param attempt resolves when the answer was right, or with `LEFT`
   * @returns whether the answer was right
   */
  async record(about, attempt) {
    const request = { ...about, startedAt: now() };
    this.#open.add(request);
    this.#count(about, "sent");
    try {
      const end = await attempt();
      this.#count(about, end === LEFT ? "left" : "right");
      return end !== LEFT;
    } catch (error) {
      this.add({ ...request, endedAt: now() }, error);
      return false;
    } finally {
      this.#open.delete(request);
    }
  }

  /** Records a request that another process sent. */
  recordElsewhere({ startedAt, endedAt, protocol, server, model, since, end, error }) {
    const about = { protocol, server, model };
    this.#count(about, "sent");
    if (error === undefined) this.#count(about, end);
    else this.add({ ...about, startedAt, endedAt, since }, error);
  }

  add(request, error) {
    this.#count(request, "failed");
    const { code, message, reason, stack, isWrong } = error;
    if (error instanceof WrongAnswer || isWrong) this.faults.push(`${describe(request)} ${message}`);
    else if (code === undefined) this.faults.push(`${describe(request)} failed with ${stack ?? error}`);
    else this.failures.push({ ...request, code, reason, text: message });
  }

  /** Notes the requests that have been in flight for too long. They are faults. */
  findStuck() {
    for (const request of this.#open) {
      if (now() - request.startedAt < SETTLES_WITHIN_MS || request.isStuck) continue;
      request.isStuck = true;
      this.faults.push(`${describe(request)} did not settle within ${SETTLES_WITHIN_MS / 1000} s`);
    }
  }

  #count({ protocol, server, model }, what) {
    for (const [counts, key] of [
      [this.protocols, protocol],
      [this.models, `${server}/${model}`],
    ]) {
      const entry = counts.get(key) ?? { sent: 0, right: 0, failed: 0, left: 0 };
      entry[what]++;
      counts.set(key, entry);
    }
  }
}

const describe = ({ protocol, server, model }) => `${protocol} request to '${model}' of ${server}`;
