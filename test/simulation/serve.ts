import { type ModelConfig, TritonError } from "@tritonjs/protocol";
import { SimulationClock } from "../../packages/cli/src/simulate/simulate.js";
import type { Tensors } from "../../packages/core/src/batch/batch-tensors.js";
import { planInstances } from "../../packages/core/src/config/instance-groups.js";
import { resolveConfig } from "../../packages/core/src/config/resolve-config.js";
import type { Execution, ExecutionResult, Executor } from "../../packages/core/src/instance/backend.js";
import { InstanceGroup } from "../../packages/core/src/instance/instance-group.js";
import { ModelInstance } from "../../packages/core/src/instance/model-instance.js";
import { ModelStatistics } from "../../packages/core/src/observe/statistics.js";
import { InferenceRequest } from "../../packages/core/src/request/inference-request.js";
import { DynamicBatchScheduler } from "../../packages/core/src/scheduler/dynamic-batch-scheduler.js";
import { DeadlineQueue } from "../../packages/core/src/system/clock.js";
import { arrivalTimes, Durations, type Scenario } from "./scenario.js";
import type { Setting } from "./setting.js";

/** The outcome of one run. */
export interface Outcome {
  /** Requests sent. */
  readonly sent: number;
  /** Requests that were answered too late, or not at all. */
  readonly missed: number;
  /** Requests that were rejected. */
  readonly shed: number;
  /** Milliseconds that the instances were busy, summed. */
  readonly busyMs: number;
  readonly durationMs: number;
  readonly batches: number;
}

/** Load and seed of a run. */
export interface Run {
  /** Requests per millisecond. */
  readonly rate: number;
  readonly seed: number;
  /** Ends the run early when more requests than this were missed. */
  readonly mayMiss?: number;
}

const NO_TENSORS: Tensors = new Map();

/** An instance that computes nothing and takes its time on the virtual clock. */
class SimulatedExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  constructor(
    private readonly durationMs: (rows: number) => number,
    private readonly clock: SimulationClock,
  ) {}
  async start(): Promise<void> {}
  async stop(): Promise<void> {}
  execute({ requests }: Execution): Promise<readonly ExecutionResult[]> {
    const results = requests.map(() => NO_TENSORS);
    return new Promise((resolve) => {
      this.clock.setTimer(this.durationMs(requests.length), () => resolve(results));
    });
  }
}

/** Serves a scenario with the library's own batcher and instances, on a virtual clock. */
export async function serve(scenario: Scenario, setting: Setting, run: Run): Promise<Outcome> {
  const clock = new SimulationClock();
  const durations = new Durations(scenario, run.seed + 1);
  let sent = 0;
  let missed = 0;
  let shed = 0;
  let busyMs = 0;
  let batches = 0;
  const config = configOf(scenario, setting);
  const owner = {
    modelName: "m",
    modelVersion: "1",
    decoupled: false,
    iterative: false,
    clock,
    statistics: new ModelStatistics(),
    outputNames: [],
    callModels: () => {
      throw new Error("nobody calls other models");
    },
  };
  const take = (rows: number): number => {
    const ms = durations.next(rows, sent / scenario.requests);
    busyMs += ms;
    batches++;
    return ms;
  };
  const instances = new InstanceGroup(
    planInstances(config).map(
      (placement) => new ModelInstance(placement, new SimulatedExecutor(take, clock), owner),
    ),
    clock,
  );
  const scheduler = new DynamicBatchScheduler(config, instances, clock, new DeadlineQueue(clock));
  instances.serve(scheduler);
  await instances.start();
  const mayMiss = run.mayMiss ?? Number.POSITIVE_INFINITY;
  for (const at of arrivalTimes(scenario, run.rate, run.seed)) {
    const due = clock.advanceTo(at);
    if (due !== undefined) await due;
    if (sent === scenario.requests || missed > mayMiss) break;
    sent++;
    const request = new InferenceRequest("m", { inputs: NO_TENSORS }, (outcome) => {
      if (TritonError.is(outcome)) missed++;
      else {
        if (clock.now() - at > scenario.targetMs) missed++;
      }
    });
    request.batchSize = 1;
    request.queueStart = at;
    try {
      scheduler.enqueue(request);
    } catch (error) {
      if (!TritonError.is(error)) throw error;
      shed++;
      missed++;
    }
    clock.runDeferred();
  }
  const durationMs = clock.now();
  if (missed <= mayMiss) await clock.drain();
  return { sent, missed, shed, busyMs, durationMs, batches };
}

function configOf(scenario: Scenario, setting: Setting): ModelConfig {
  return resolveConfig({
    modelName: "m",
    inputs: [],
    outputs: [],
    options: { maxBatchSize: setting.maxBatchSize, batcher: setting.batcher },
    backend: "javascript",
    platform: "",
    batchingByDefault: true,
    decoupledByDefault: false,
    defaultInstanceCount: scenario.instances,
  });
}
