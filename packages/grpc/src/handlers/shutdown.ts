import { TritonError } from "@tritonjs/protocol";

/**
 * The stop of a frontend, as its calls see it: once it has begun, requests are refused; when the time for those
 * at hand is over, `onExpire` listeners end what is left.
 */
export class Shutdown {
  #begun = false;
  /**
   * A ring, which begins and ends here. A `Set` would live as long as the server and keep calls alive that are over: each
   * table that V8 outgrows holds its entries and the next table, and one of old age is collected seldom.
   */
  readonly #listeners = ring();

  /** Refuses requests from now on. */
  begin(): void {
    this.#begun = true;
  }

  /** The time for the calls at hand is over. */
  expire(): void {
    const listeners: Entry["listener"][] = [];
    for (let entry = this.#listeners.next; entry !== this.#listeners; entry = entry.next) {
      listeners.push(entry.listener);
    }
    for (const listener of listeners) listener?.(shuttingDown());
  }

  /** @throws TritonError UNAVAILABLE once the stop has begun. */
  refuseIfBegun(): void {
    if (this.#begun) throw shuttingDown();
  }

  /** Calls `listener` when time is over. The returned function takes it back. */
  onExpire(listener: (reason: TritonError) => void): () => void {
    const { previous } = this.#listeners;
    const entry: Entry = { listener, previous, next: this.#listeners };
    previous.next = entry;
    this.#listeners.previous = entry;
    return () => unlink(entry);
  }
}

interface Entry {
  /** Undefined for the beginning of the ring. */
  readonly listener?: (reason: TritonError) => void;
  previous: Entry;
  next: Entry;
}

function ring(): Entry {
  const start = {} as Entry;
  start.previous = start;
  start.next = start;
  return start;
}

/** Takes an entry out, after which it leads to no other one. Doing so twice is harmless. */
function unlink(entry: Entry): void {
  entry.previous.next = entry.next;
  entry.next.previous = entry.previous;
  entry.next = entry;
  entry.previous = entry;
}

function shuttingDown(): TritonError {
  return new TritonError(
    "UNAVAILABLE",
    "GRPC server is shutting down and has stopped accepting new requests.",
    { reason: "SERVER_STOPPING" },
  );
}
