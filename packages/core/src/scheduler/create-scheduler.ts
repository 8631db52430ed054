import type { ModelConfig, Tensor } from "@tritonjs/protocol";
import type { VariableLength } from "../batch/variable-length.js";
import type { Clock } from "../clock/clock.js";
import type { DeadlineQueue } from "../clock/deadline-queue.js";
import { initialStates } from "../config/options/initial-states.js";
import { readFileNow } from "../files/read-small-file.js";
import type { InstanceGroup } from "../instance/instance-group.js";
import type { ModelStatistics } from "../observe/statistics.js";
import type { EvictionListener } from "../request/sequence-info.js";

import { DirectScheduler } from "./direct/direct-scheduler.js";
import { DynamicBatchScheduler } from "./dynamic-batch/dynamic-batch-scheduler.js";
import { GroupingScheduler } from "./dynamic-batch/grouping-scheduler.js";
import { EnsembleScheduler } from "./ensemble/ensemble-scheduler.js";
import type { FindMember } from "./ensemble/member.js";
import type { Scheduler } from "./scheduler.js";
import { SequenceBatchScheduler } from "./sequence-batch/sequence-batch-scheduler.js";

/** Everything that a scheduler may need from its model. */
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
  /**
   * Initial states of sequences, for a model with implicit state.
   * @default the initial states of the configuration
   */
  readonly initialStates?: ReadonlyMap<string, Tensor> | undefined;
  readonly findMember: FindMember;
  /** True if one batch may combine requests with different optional inputs. */
  readonly mixedInputs?: boolean | undefined;
  /** Rules for batches of requests whose lengths differ. */
  readonly variableLength?: VariableLength | undefined;
}

/** Creates the scheduler that a configuration asks for. */
export function createScheduler(context: SchedulerContext): Scheduler {
  const { config, instances, clock, deadlines, holdUntil } = context;
  if (config.ensembleScheduling !== undefined) return new EnsembleScheduler(context);
  if (config.sequenceBatching !== undefined) {
    const { backlogHoldUntil, onSequenceEvict: onEvict } = context;
    const given = context.initialStates ?? initialStates(config, readFileNow).states;
    const options = { holdUntil, backlogHoldUntil, onEvict, initialStates: given };
    return new SequenceBatchScheduler(config, instances, clock, deadlines, options);
  }
  if (config.dynamicBatching === undefined) return new DirectScheduler(instances);
  const { variableLength } = context;
  if (variableLength !== undefined) {
    const { grouping, padded } = variableLength;
    return new GroupingScheduler(config, instances, clock, deadlines, grouping, padded, holdUntil);
  }
  const { mixedInputs: mixed } = context;
  return new DynamicBatchScheduler(config, instances, clock, deadlines, holdUntil, { mixed });
}
