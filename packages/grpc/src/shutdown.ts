import { errorFor, type TritonError } from "@tritonjs/protocol";

/**
 * The shutdown of a frontend as its calls see it. Once it has begun, requests are rejected. When the time for calls in
 * flight is over, `onExpire` listeners end the remaining ones.
 */
export class Shutdown {
  #begun = false;
  /**
   * Begin and end of a ring. A `Set` would live as long as the server and keep finished calls alive. Each table that V8
   * outgrows holds its entries and the next table, and an old table is seldom collected.
   */
  readonly #listeners = ring();

  /** Rejects requests from now on. */
  begin(): void {
    this.#begun = true;
  }

  /** Ends the time for calls in flight. */
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

  /** Calls `listener` when the time is over. The returned function removes the listener. */
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

/** Removes an entry, and its links to other entries. Removing it twice is harmless. */
function unlink(entry: Entry): void {
  entry.previous.next = entry.next;
  entry.next.previous = entry.previous;
  entry.next = entry;
  entry.previous = entry;
}

function shuttingDown(): TritonError {
  return errorFor("SERVER_STOPPING", "GRPC server is shutting down and has stopped accepting new requests.");
}
