import type { CallModels } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import { planInstances } from "../config/instances.js";
import { isDecoupled, type ModelConfig } from "../config/model-config.js";
import type { ExecutorContext } from "../instance/backend.js";
import type { Executor } from "../instance/executor.js";
import { InstanceGroup } from "../instance/instance-group.js";
import { ModelInstance } from "../instance/model-instance.js";
import type { ModelStatistics } from "../observe/statistics.js";
import { OutputChecker } from "../response/check-outputs.js";

/** Makes the executor of one instance. */
export type ExecutorFactory = (context: ExecutorContext) => Executor;

/** What the instances of a model are made of. */
export interface InstancesInit {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
  readonly createExecutor: ExecutorFactory;
  readonly callModels: CallModels;
}

/** All instances that the configuration asks for; an ensemble has none. */
export function createInstances(init: InstancesInit): InstanceGroup {
  const { name, version, config, clock, statistics, createExecutor, callModels } = init;
  const checker = new OutputChecker(config);
  const owner = {
    modelName: name,
    modelVersion: String(version),
    decoupled: isDecoupled(config),
    iterative: config.sequenceBatching?.iterativeSequence ?? false,
    clock,
    statistics,
    outputNames: config.output.map((output) => output.name),
    callModels,
  };
  const placements = planInstances(config);
  const instances = placements.map((placement) => {
    const info = {
      modelName: name,
      modelVersion: version,
      modelConfig: config,
      instanceName: placement.name,
      instanceIndex: placement.index,
      device: { kind: placement.kind, id: placement.deviceId },
    };
    const executor = createExecutor({ placement, info, checker, clock, instanceCount: placements.length });
    return new ModelInstance(placement, executor, owner);
  });
  return new InstanceGroup(instances, clock);
}
