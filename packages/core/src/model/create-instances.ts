import { isDecoupled, type ModelConfig } from "@tritonjs/protocol";
import type { Registry } from "prom-client";
import { BatchLayout } from "../batch/batch-layout.js";
import type { VariableLength } from "../batch/variable-length.js";
import type { CallModels } from "../callable/model-caller.js";
import type { Clock } from "../clock/clock.js";
import { type HostPolicies, hostPolicyOf } from "../config/placement/host-policy.js";
import type { ExecutorContext, ModelControl } from "../instance/backend.js";
import type { Executor } from "../instance/executor.js";
import { ModelInstance } from "../instance/model-instance.js";
import type { RateLimiter } from "../instance/rate-limiter/rate-limiter.js";
import type { Log } from "../observe/log/log.js";
import type { ModelStatistics } from "../observe/statistics.js";
import { OutputChecker } from "../response/check-outputs.js";
import { LiveInstances, type MakeInstance } from "./live-instances.js";
import type { ModelFaults } from "./model-faults.js";

/** Makes the executor of one instance. */
export type ExecutorFactory = (context: ExecutorContext) => Executor;

/** Everything that the instances of a model are made from. */
export interface InstancesInit {
  readonly name: string;
  readonly version: number;
  readonly config: ModelConfig;
  readonly clock: Clock;
  readonly statistics: ModelStatistics;
  readonly createExecutor: ExecutorFactory;
  readonly callModels: CallModels;
  /** Decides whose turn it is, over all models; undefined if any idle instance may run. */
  readonly rateLimiter?: RateLimiter | undefined;
  readonly hostPolicies?: HostPolicies | undefined;
  /** True if callbacks have to return ndarrays, without any conversion. */
  readonly strict?: boolean | undefined;
  /** Rules for batches of requests whose lengths differ. */
  readonly variableLength?: VariableLength | undefined;
  /** Log that models write to, and registry of their own metrics. */
  readonly log: Log;
  readonly metrics: () => Registry;
  /** Told when an instance cannot be restarted or replaced. */
  readonly faults: ModelFaults;
  /** The models of the repository, for models that load others. */
  readonly control?: ModelControl | undefined;
}

/** Creates all instances that the configuration asks for; an ensemble has none. */
export function createInstances(init: InstancesInit): LiveInstances {
  const { name, version, config, clock, statistics, createExecutor, callModels } = init;
  const checker = new OutputChecker(config, init.strict);
  const layout = new BatchLayout(config, init.variableLength?.padding);
  const owner = {
    modelName: name,
    modelVersion: String(version),
    decoupled: isDecoupled(config),
    iterative: config.sequenceBatching?.iterativeSequence ?? false,
    clock,
    statistics,
    outputNames: config.output.map((output) => output.name),
    callModels,
    layout: layout.isPlain ? undefined : layout,
    faults: init.faults,
  };
  const make: MakeInstance = (placement, modelConfig, instanceCount) => {
    const info = {
      modelName: name,
      modelVersion: version,
      modelConfig,
      instanceName: placement.name,
      instanceIndex: placement.index,
      device: { kind: placement.kind, id: placement.deviceId },
    };
    const hosting = placement.group.hosting ?? {};
    const nice = hostPolicyOf(placement, init.hostPolicies ?? {})?.nice;
    const { log, metrics, control } = init;
    const queuedRequests = () => statistics.pendingCount;
    const run = { placement, info, checker, clock, instanceCount, hosting, nice, queuedRequests };
    const context = { ...run, log, metrics, control };
    return new ModelInstance(placement, createExecutor(context), owner);
  };
  return new LiveInstances(config, clock, make, init);
}
