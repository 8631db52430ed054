import type { Clock } from "../clock/clock.js";
import type { DeadlineQueue } from "../clock/deadline-queue.js";
import type { ModelConfig } from "../config/model-config.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { ModelStatistics } from "../observe/statistics.js";
import type { EvictionListener } from "../request/sequence-info.js";
import { DirectScheduler } from "../scheduler/direct/direct-scheduler.js";
import { DynamicBatchScheduler } from "../scheduler/dynamic-batch/dynamic-batch-scheduler.js";
import { EnsembleScheduler } from "../scheduler/ensemble/ensemble-scheduler.js";
import type { FindMember } from "../scheduler/ensemble/member.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import { SequenceBatchScheduler } from "../scheduler/sequence-batch/sequence-batch-scheduler.js";

/** What a scheduler may need of its model. */
export interface SchedulerContext {
  readonly config: ModelConfig;
  readonly version: number;
  readonly instances: InstanceGroup;
  readonly clock: Clock;
  readonly deadlines: DeadlineQueue;
  readonly statistics: ModelStatistics;
  readonly holdUntil: number;
  readonly backlogHoldUntil: number;
  readonly onSequenceEvict?: EvictionListener | undefined;
  readonly findMember: FindMember;
}

/** The scheduler that a configuration asks for. */
export function createScheduler(context: SchedulerContext): Scheduler {
  const { config, instances, clock, deadlines, holdUntil } = context;
  if (config.ensembleScheduling !== undefined) return new EnsembleScheduler(context);
  if (config.sequenceBatching !== undefined) {
    const { backlogHoldUntil, onSequenceEvict: onEvict } = context;
    const options = { holdUntil, backlogHoldUntil, onEvict };
    return new SequenceBatchScheduler(config, instances, clock, deadlines, options);
  }
  if (config.dynamicBatching === undefined) return new DirectScheduler(instances);
  return new DynamicBatchScheduler(config, instances, clock, deadlines, holdUntil);
}
