import type { NativeSession } from "./native-session.js";

/** One session for all instances of a model: opened for the first of them, closed after the last. */
export class SharedSession {
  #users = 0;
  #session: Promise<NativeSession> | undefined;
  /** Resolves when the session before this one is closed. */
  #closed: Promise<void> = Promise.resolve();

  constructor(private readonly open: () => Promise<NativeSession>) {}

  /**
   * Opens the session, or waits for it. Call `release` once for each call that resolves.
   *
   * @throws TritonError if the model does not load
   */
  async acquire(): Promise<NativeSession> {
    this.#users++;
    this.#session ??= this.#closed.then(this.open);
    try {
      return await this.#session;
    } catch (error) {
      this.#users--;
      if (this.#users === 0) this.#session = undefined;
      throw error;
    }
  }

  /** Ends the use of the session by one instance. Resolves when it is closed, if this was the last one. */
  async release(): Promise<void> {
    if (--this.#users > 0) return;
    const session = this.#session;
    this.#session = undefined;
    this.#closed = session === undefined ? this.#closed : session.then((open) => open.close());
    await this.#closed;
  }
}
