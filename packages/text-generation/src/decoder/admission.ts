import type { EngineLoad } from "./engine-load.js";

/** Decides on the main thread whether the engine may get its next request, which else waits in the model's queue. */
export class Admission {
  #load: EngineLoad | undefined;
  #sent = 0;

  /** @param maxRunning largest number of texts at a time */
  constructor(private readonly maxRunning: number) {}

  /** Records a request that was sent to the engine. */
  sent(): void {
    this.#sent++;
  }

  /** Takes a report of the engine. A new engine starts to count again. */
  take(load: EngineLoad): void {
    if (load.taken === 0) this.#sent = 0;
    this.#load = load;
  }

  /**
   * Number of requests that the engine may have at a time. While the space for keys and values could run out, the
   * engine gets one request after the other: each report shows whether there is room for the next.
   */
  get capacity(): number {
    const load = this.#load;
    if (load === undefined) return this.maxRunning;
    const unknown = this.#sent - load.taken;
    const certain = (load.running + load.waiting + unknown + 1) * load.contextLength <= load.totalTokens;
    if (certain) return this.maxRunning;
    return unknown === 0 && load.waiting === 0 && load.room > 0 ? this.maxRunning : 0;
  }
}
