import { readFileSync } from "node:fs";
import type { ModelConfig } from "@tritonjs/protocol";
import { planInstances } from "../../src/config/instance-groups.js";
import { initialStates } from "../../src/config/sequence-batching.js";
import type { Execution, ExecutionResult, Executor } from "../../src/instance/backend.js";
import { InstanceGroup } from "../../src/instance/instance-group.js";
import { ModelInstance } from "../../src/instance/model-instance.js";
import { ModelStatistics } from "../../src/observe/statistics.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import {
  SequenceBatchScheduler,
  type SequenceSchedulerOptions,
} from "../../src/scheduler/sequence/sequence-batch-scheduler.js";
import { DeadlineQueue, VirtualClock } from "../../src/system/clock.js";
import { instanceOwner } from "./instance-owner.js";
import { modelConfig } from "./model-config.js";
import { outcomeText, type RequestFields, requestWith, thrownText } from "./requests.js";
import { ones } from "./tensors.js";

export type ModelOptions = NonNullable<Parameters<typeof modelConfig>[0]>["options"];

/** Runs each batch for `execMs` of the virtual clock and logs its requests. */
class BenchExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  onHealth: Executor["onHealth"];

  constructor(
    private readonly bench: SequenceBench,
    private readonly instance: number,
  ) {}

  async start(): Promise<void> {}
  async stop(): Promise<void> {}

  async execute({ requests }: Execution): Promise<readonly ExecutionResult[]> {
    const { bench } = this;
    bench.batches.push(requests.map((request) => (request.ready ? request.id : "-")).join(" "));
    bench.seen.push(...(requests as readonly InferenceRequest[]));
    bench.takenBy.push(this.instance);
    await new Promise<void>((resolve) => bench.clock.setTimer(bench.execMs, resolve));
    return requests.map((request) => bench.answer(request as InferenceRequest));
  }
}

/** A sequence batcher with instances that only log what they get, under a virtual clock. */
export class SequenceBench {
  readonly clock = new VirtualClock();
  readonly deadlines = new DeadlineQueue(this.clock);
  readonly statistics = new ModelStatistics();
  /** Ids of the requests of each batch; `-` is a null request. */
  readonly batches: string[] = [];
  readonly seen: InferenceRequest[] = [];
  /** Number of the instance that took each batch. */
  readonly takenBy: number[] = [];
  /** `id: outcome`, in the order of the answers. */
  readonly outcomes: string[] = [];
  /** `correlation id: reason`. */
  readonly evictions: string[] = [];
  readonly config: ModelConfig;
  readonly instances: InstanceGroup;
  readonly scheduler: SequenceBatchScheduler;
  execMs = 10;
  answer: (request: InferenceRequest) => ExecutionResult = () => new Map();

  constructor(
    options: ModelOptions,
    instanceCount = 1,
    hold: Partial<SequenceSchedulerOptions> = {},
    inputs?: Parameters<typeof modelConfig>[0],
  ) {
    this.config = modelConfig({ ...inputs, options, instances: instanceCount });
    const owner = instanceOwner(this.clock, this.statistics, this.config.sequenceBatching?.iterativeSequence);
    this.instances = new InstanceGroup(
      planInstances(this.config).map(
        (placement) => new ModelInstance(placement, new BenchExecutor(this, placement.index), owner),
      ),
      this.clock,
    );
    this.scheduler = new SequenceBatchScheduler(
      { config: this.config, clock: this.clock, deadlines: this.deadlines },
      {
        initialStates: initialStates(this.config, readFileSync).states,
        holdUntil: 0,
        backlogHoldUntil: 0,
        onEvict: ({ correlationId }, reason) => this.evictions.push(`${correlationId}: ${reason}`),
        ...hold,
      },
    );
    this.instances.serve(this.scheduler);
    for (const instance of this.instances.instances) instance.healthy = true;
  }

  /**
   * Sends a request. `what` is its id: the correlation id, then any text; `^` marks a START and `$` an END, as in
   * `A1^`, `A2`, `A3$`.
   */
  send(what: string, init: RequestFields & { readonly columns?: number } = {}): InferenceRequest {
    const id = what.replace(/[\^$]/g, "");
    const request = requestWith(
      { x: ones(1, init.columns ?? 2) },
      {
        id,
        correlationId: id.slice(0, 1),
        sequenceStart: what.includes("^"),
        sequenceEnd: what.includes("$"),
        onResponse: (outcome) => this.outcomes.push(`${id}: ${outcomeText(outcome)}`),
        ...init,
      },
    );
    request.batchSize = 1;
    request.queueStart = this.clock.now();
    this.scheduler.enqueue(request);
    return request;
  }

  /** Error with which the scheduler rejects a request. */
  refusal(what: string, init: RequestFields = {}): string {
    return thrownText(() => this.send(what, init));
  }

  /** Sends requests one after the other, 20 ms apart. */
  async sendEach(...all: readonly string[]): Promise<void> {
    for (const what of all) {
      this.send(what);
      await this.clock.advance(20);
    }
  }
}
