import { TritonError } from "@tritonjs/core";

/**
 * The stop of a frontend, as its calls see it: once it has begun, requests are refused; when the time for those
 * at hand is over, `onExpire` listeners end what is left.
 */
export class Shutdown {
  #begun = false;
  readonly #listeners = new Set<(reason: TritonError) => void>();

  /** Refuses requests from now on. */
  begin(): void {
    this.#begun = true;
  }

  /** The time for the calls at hand is over. */
  expire(): void {
    for (const listener of [...this.#listeners]) listener(shuttingDown());
  }

  /** @throws TritonError UNAVAILABLE once the stop has begun. */
  refuseIfBegun(): void {
    if (this.#begun) throw shuttingDown();
  }

  /** Calls `listener` when time is over. The returned function takes it back. */
  onExpire(listener: (reason: TritonError) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

function shuttingDown(): TritonError {
  return new TritonError(
    "UNAVAILABLE",
    "GRPC server is shutting down and has stopped accepting new requests.",
  );
}
