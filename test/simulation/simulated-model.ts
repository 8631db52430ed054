import type { Batcher } from "@tritonjs/core/extension";
import type { ModelConfig } from "@tritonjs/protocol";
import type { Tensors } from "../../packages/core/src/batch/batch-tensors.js";
import { planInstances } from "../../packages/core/src/config/instance-groups.js";
import {
  type BatcherOptions,
  type ConfiguredBatcher,
  isBatcher,
} from "../../packages/core/src/config/model-options.js";
import { resolveConfig } from "../../packages/core/src/config/resolve-config.js";
import type { Execution, ExecutionResult, Executor } from "../../packages/core/src/instance/backend.js";
import { InstanceGroup } from "../../packages/core/src/instance/instance-group.js";
import { ModelInstance } from "../../packages/core/src/instance/model-instance.js";
import { InferenceRequest, type RequestSender } from "../../packages/core/src/request/inference-request.js";
import { DynamicBatchScheduler } from "../../packages/core/src/scheduler/dynamic/dynamic-batch-scheduler.js";
import type { Scheduler } from "../../packages/core/src/scheduler/scheduler.js";
import { DeadlineQueue } from "../../packages/core/src/system/clock.js";
import { instanceOwner } from "../../packages/core/test/support/instance-owner.js";
import { SimulationClock } from "../../packages/perf/src/simulate/simulation-clock.js";

/** What a simulated model is bound with. */
export interface SimulatedModelOptions {
  readonly maxBatchSize: number;
  readonly instances: number;
  /** Options of Triton's batcher, or another batcher. */
  readonly batcher: BatcherOptions | Batcher;
  /** Milliseconds that a batch of this number of rows takes. */
  readonly durationMs: (rows: number) => number;
  /** The machine that it shares with other models. @default a machine of its own, whose cores never lack */
  readonly machine?: SimulatedMachine;
}

/** A machine whose models share its cores. */
export interface SimulatedMachine {
  readonly clock: SimulationClock;
  /** Runs work of this many milliseconds, and calls back when it is done. */
  run(ms: number, done: () => void): void;
}

const NO_TENSORS: Tensors = new Map();

/** An instance that computes nothing and takes its time on the virtual clock. */
class SimulatedExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  constructor(
    private readonly durationMs: (rows: number) => number,
    private readonly machine: SimulatedMachine,
  ) {}
  async start(): Promise<void> {}
  async stop(): Promise<void> {}
  execute({ requests }: Execution): Promise<readonly ExecutionResult[]> {
    const results = requests.map(() => NO_TENSORS);
    return new Promise((resolve) => {
      this.machine.run(this.durationMs(requests.length), () => resolve(results));
    });
  }
}

/** The library's own batcher and instances on a virtual clock, around a model that only takes its time. */
export class SimulatedModel {
  readonly clock: SimulationClock;
  readonly scheduler: Scheduler;
  readonly #instances: InstanceGroup;

  constructor(options: SimulatedModelOptions) {
    const machine = options.machine ?? ownMachine();
    const { clock } = machine;
    this.clock = clock;
    const config = configOf(options);
    const owner = instanceOwner(clock);
    this.#instances = new InstanceGroup(
      planInstances(config).map(
        (placement) =>
          new ModelInstance(placement, new SimulatedExecutor(options.durationMs, machine), owner),
      ),
      clock,
    );
    const deadlines = new DeadlineQueue(clock);
    const { batcher } = options;
    const model = { config, instances: this.#instances, clock, deadlines };
    // The batchers of packages are made for the published core, which is the same.
    this.scheduler = isBatcher(batcher as ConfiguredBatcher)
      ? ((batcher as Batcher).open(model as never) as unknown as Scheduler)
      : new DynamicBatchScheduler(model);
    this.#instances.serve(this.scheduler);
  }

  async start(): Promise<void> {
    await this.#instances.start();
  }

  /**
   * Sends a request of one row that arrives now.
   *
   * @param content fields of the request
   * @throws TritonError if the batcher refuses it
   */
  send(
    content: Partial<Pick<InferenceRequest, "priority" | "deadline" | "caller">>,
    receive: RequestSender["receive"],
  ): void {
    const request = new InferenceRequest("m", { inputs: NO_TENSORS, ...content }, { receive });
    request.batchSize = 1;
    request.queueStart = this.clock.now();
    this.scheduler.enqueue(request);
  }
}

function ownMachine(): SimulatedMachine {
  const clock = new SimulationClock();
  return { clock, run: (ms, done) => void clock.setTimer(ms, done) };
}

function configOf({ maxBatchSize, batcher, instances }: SimulatedModelOptions): ModelConfig {
  return resolveConfig({
    modelName: "m",
    inputs: [],
    outputs: [],
    options: { maxBatchSize, batcher },
    backend: "javascript",
    platform: "",
    batchingByDefault: true,
    decoupledByDefault: false,
    defaultInstanceCount: instances,
  });
}
