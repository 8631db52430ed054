import type { LoadLevel } from "./load-level.js";
import type { LoadWindow } from "./request-records.js";

/** Sends requests to one target by the level that is set, in threads of its own unless the target is in process. */
export interface LoadGenerator {
  /** Sets the level. Requests in flight run on, so load never pauses between levels. */
  begin(level: LoadLevel): Promise<void>;
  /** Collects the requests that ended since the last call. Records are moved out, so memory stays bounded. */
  take(): Promise<LoadWindow>;
  /** Sends exactly `count` requests by the level that is set, and resolves when all have ended. */
  run(count: number): Promise<LoadWindow>;
  /** Stops sending and waits until the requests in flight have ended; ends open sequences. */
  pause(): Promise<LoadWindow>;
  /** Ends at once: cancels the requests in flight, and frees threads, connections and shared memory. */
  close(): Promise<void>;
}
