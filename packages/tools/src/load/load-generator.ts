import type { LoadLevel } from "./load-level.js";
import type { LoadWindow } from "./request-records.js";

/** Sends requests to one target by the level that is set, in threads of its own unless the target is in process. */
export interface LoadGenerator {
  /**
   * Sets the level, and sends from now on. Requests in flight run on, so load never pauses between levels.
   *
   * @throws TritonError INVALID_ARG for a level that cannot be sent, such as a rate of 0.
   */
  begin(level: LoadLevel): Promise<void>;
  /** Collects the requests that ended since the last call. Records are moved out, so memory stays bounded. */
  take(): Promise<LoadWindow>;
  /**
   * Pauses, then sends exactly `count` requests by a level, and resolves when all have ended. The window has only
   * these. The generator stays paused.
   */
  run(level: LoadLevel, count: number): Promise<LoadWindow>;
  /**
   * Stops sending and waits until the requests in flight have ended; ends open sequences. A fixed schedule is played to
   * its end before. Its window has the requests that ended since the last call of `take`.
   */
  pause(): Promise<LoadWindow>;
  /** Ends at once: cancels the requests in flight, and frees threads, connections and shared memory. */
  close(): Promise<void>;
}
