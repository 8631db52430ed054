import type { LoadGenerator } from "../load/load-generator.js";
import type { LoadLevel } from "../load/load-level.js";
import type { LoadWindow } from "../load/request-records.js";
import type { LevelResult, WindowSummary } from "./level-result.js";
import type { MeasureClock } from "./measure-clock.js";
import type { MeasureOptions } from "./measure-options.js";
import type { MetricsWatch } from "./server/metrics-watch.js";
import type { ServerWatch } from "./server/server-watch.js";

/** Observer of a measurement, for live progress and exports. */
export interface MeasureObserver {
  onLevelBegin?(level: LoadLevel, phase: string | undefined): void;
  /**
   * Called for each piece of records before it is summed up. A window may come in several pieces. The next piece waits
   * for the promise, so that an export holds no more than one.
   */
  onRecords?(level: LoadLevel, window: LoadWindow): Promise<void> | undefined;
  /** Called for each piece, with its figures. */
  onMoment?(level: LoadLevel, summary: WindowSummary): void;
  onWindow?(level: LoadLevel, summary: WindowSummary, trial: number): void;
  onLevel?(result: LevelResult): void;
}

/** Everything that a measurement works with. */
export interface MeasureSession {
  readonly generator: LoadGenerator;
  readonly clock: MeasureClock;
  readonly options: MeasureOptions;
  readonly server?: ServerWatch;
  readonly metrics?: MetricsWatch;
  readonly observer: MeasureObserver;
  /** Ends the measurement early. The level that runs is reported as interrupted. */
  readonly signal: AbortSignal;
}
