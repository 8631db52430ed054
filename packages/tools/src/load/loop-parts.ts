import type { LoadCarrier } from "../target/carrier.js";
import type { LoadRequest } from "../target/load-request.js";
import type { ThreadShare } from "./concurrency-target.js";
import type { LoadClock } from "./load-clock.js";
import type { KeptParts } from "./record-columns.js";
import type { RequestRecords } from "./request-records.js";
import type { RequestSource } from "./request-source.js";

/** Parts of a loop. */
export interface LoadLoopParts {
  readonly clock: LoadClock;
  /** Opens the carrier, with the loop's listener. */
  readonly openCarrier: (onEnd: (request: LoadRequest) => void) => LoadCarrier;
  readonly source: RequestSource;
  readonly share: ThreadShare;
  readonly seed: number;
  /** Live sequences of this thread in levels that are not of concurrency. */
  readonly sequences: number;
  readonly serialSequences: boolean;
  /** Time limit of each request; none if undefined. */
  readonly timeoutMs?: number;
  readonly kept: KeptParts;
}

/** What a loop did since it was last asked. */
export interface LoopWindow {
  readonly records: RequestRecords;
  /** Requests that ended here and were sent late, without those that found no connection. */
  readonly delayed: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
}
