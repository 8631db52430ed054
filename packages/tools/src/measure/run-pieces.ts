import type { LoadWindow } from "../load/request-records.js";

/**
 * The pieces of a run with an exact number of requests. Together they last from the first scheduled send to the last
 * end, so that a run is not diluted by the time before and after it.
 */
export class RunPieces {
  #hasBegun = false;

  /** A piece while the run goes on. None before the first request has ended. */
  next(window: LoadWindow): LoadWindow[] {
    const { records } = window;
    if (records.count === 0) return this.#hasBegun ? [window] : [];
    if (this.#hasBegun) return [window];
    this.#hasBegun = true;
    let start = Number.POSITIVE_INFINITY;
    for (let i = 0; i < records.count; i++) {
      // A request that never reached a connection has no time of sending.
      const sent = records.sent[i]!;
      start = Math.min(start, records.scheduled[i]!, Number.isNaN(sent) ? start : sent);
    }
    return [start < window.end ? { ...window, start } : window];
  }

  /** The last piece. None if all requests are in those before. */
  last(window: LoadWindow): LoadWindow[] {
    const { records } = window;
    if (records.count === 0) return this.#hasBegun ? [] : [window];
    const [piece] = this.next(window);
    let end = Number.NEGATIVE_INFINITY;
    for (let i = 0; i < records.count; i++) end = Math.max(end, records.end[i]!);
    return [end > piece!.start ? { ...piece!, end } : piece!];
  }
}
