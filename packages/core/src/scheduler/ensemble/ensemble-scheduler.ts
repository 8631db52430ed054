import type { ModelConfig } from "@tritonjs/protocol";
import type { Clock } from "../../clock/clock.js";
import type { ModelStatistics } from "../../observe/statistics.js";
import type { PendingRequest } from "../../request/pending-request.js";
import type { Scheduler } from "../scheduler.js";
import { isPartOfWork, stoppedError } from "../stopped-error.js";
import { EnsemblePlan } from "./ensemble-plan.js";
import { type EnsembleOwner, EnsembleRun } from "./ensemble-run.js";
import type { FindMember } from "./member.js";
import { StepLimit } from "./step-limit.js";

/** External dependencies of an ensemble's scheduler. */
export interface EnsembleContext {
  readonly config: ModelConfig;
  readonly version: number;
  readonly findMember: FindMember;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
}

/**
 * Runs requests through the steps of an ensemble. It has no queue and no instances: requests wait in the queues of
 * the members.
 */
export class EnsembleScheduler implements Scheduler {
  readonly queuedCount = 0;
  readonly #owner: EnsembleOwner;
  #stopped = false;

  constructor({ version, ...context }: EnsembleContext) {
    const plan = new EnsemblePlan(context.config);
    const limit = context.config.ensembleScheduling?.maxInflightRequests ?? 0;
    this.#owner = {
      ...context,
      version: String(version),
      plan,
      limits: plan.steps.map(() => new StepLimit(limit)),
    };
  }

  enqueue(request: PendingRequest): void {
    if (this.#stopped && !isPartOfWork(request)) throw stoppedError(request);
    const run = new EnsembleRun(request, this.#owner);
    request.startExecution(run);
    this.#owner.statistics.pendingCount--;
    run.start();
  }

  stop(): void {
    this.#stopped = true;
  }

  failQueued(): void {}
}
