import type { TritonError } from "@tritonjs/protocol";
import type { BatchLayout } from "../batch/batch-layout.js";
import type { CallModels } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import type { ModelStatistics } from "../observe/statistics.js";

/** State that all instances of one model version share. */
export interface InstanceOwner {
  readonly modelName: string;
  readonly modelVersion: string;
  /** True if requests get any number of responses. */
  readonly decoupled: boolean;
  /** True if the model may reschedule a request. */
  readonly iterative: boolean;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
  /** Names of all outputs, in the model's order. */
  readonly outputNames: readonly string[];
  readonly callModels: CallModels;
  /** Rules that join requests to a batch; undefined if they are joined by rows. */
  readonly layout?: BatchLayout | undefined;
  /** Told when an instance that has crashed cannot be restarted. */
  readonly faults?: { restartFailed(instance: string, error: TritonError): void } | undefined;
}
