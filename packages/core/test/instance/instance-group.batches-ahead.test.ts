import { describe, expect, it } from "vitest";
import { Payload } from "../../src/batch/payload.js";
import { planInstances } from "../../src/config/instance-groups.js";
import type { Execution, ExecutionResult, Executor } from "../../src/instance/backend.js";
import { InstanceGroup } from "../../src/instance/instance-group.js";
import { ModelInstance } from "../../src/instance/model-instance.js";
import { ModelStatistics } from "../../src/observe/statistics.js";
import { VirtualClock } from "../../src/system/clock.js";
import { BatchesOfWorker } from "../../src/worker/worker-executor.js";
import { instanceOwner } from "../support/instance-owner.js";
import { modelConfig } from "../support/model-config.js";
import { queuedRequest } from "../support/requests.js";

/** Stands for a worker: runs its batches one after the other, each for 10 ms after 1 ms for its inputs. */
class WorkerLike implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  readonly log: string[] = [];
  readonly #batches = new BatchesOfWorker(() => undefined);
  #count = 0;

  constructor(
    private readonly clock: VirtualClock,
    readonly takesAhead: boolean,
  ) {}

  async start(): Promise<void> {}
  async stop(): Promise<void> {}

  execute(execution: Execution): Promise<readonly ExecutionResult[] | undefined> {
    const batch = this.#count++;
    this.log.push(`has ${batch} @${this.clock.now()}`);
    return new Promise((resolve, reject) => {
      this.#batches.add({ batch, execution, resolve, reject });
      this.clock.setTimer(1, () => {
        execution.inputsReady();
        if (this.#batches.running?.batch === batch) this.#run();
      });
    });
  }

  #run(): void {
    this.clock.setTimer(10, () => {
      const done = this.#batches.takeDone()!;
      this.log.push(`did ${done.batch} @${this.clock.now()}`);
      if (this.#batches.running !== undefined) this.#run();
      done.execution.outputsReady();
      done.resolve(done.execution.requests.map(() => new Map()));
    });
  }
}

async function groupOf(count: number, takesAhead: boolean) {
  const clock = new VirtualClock();
  const executor = new WorkerLike(clock, takesAhead);
  const statistics = new ModelStatistics();
  const owner = instanceOwner(clock, statistics);
  const plan = planInstances(modelConfig())[0]!;
  const instances = Array.from({ length: count }, () => new ModelInstance(plan, executor, owner));
  const group = new InstanceGroup(instances, clock);
  await group.start();
  return { clock, executor, group, statistics };
}

function payloadOf(complete: boolean): Payload {
  const payload = new Payload();
  payload.add(queuedRequest(1));
  payload.complete = complete;
  return payload;
}

describe("an instance that takes batches ahead", () => {
  it("holds one more batch while it runs one, and does not idle between batches", async () => {
    const { clock, executor, group } = await groupOf(1, true);
    for (let i = 0; i < 3; i++) group.enqueue(payloadOf(true));
    await clock.advance(40);
    expect(executor.log).toEqual([
      ...["has 0 @0", "has 1 @0", "did 0 @11"],
      ...["has 2 @11", "did 1 @21", "did 2 @31"],
    ]);
  });

  it("gets a growing batch only once that is complete", async () => {
    const { clock, executor, group } = await groupOf(1, true);
    const waiting = payloadOf(false);
    group.enqueue(payloadOf(true));
    group.enqueue(waiting);
    await clock.advance(5);
    expect([executor.log, waiting.state]).toEqual([["has 0 @0"], "queued"]);
    waiting.complete = true;
    group.dispatch();
    expect([executor.log.at(-1), waiting.state]).toEqual(["has 1 @5", "taken"]);
  });

  it("gets no batch ahead when the executor declines or other instances exist", async () => {
    for (const [count, takesAhead] of [
      [1, false],
      [2, true],
    ] as const) {
      const { clock, executor, group } = await groupOf(count, takesAhead);
      for (let i = 0; i <= count; i++) group.enqueue(payloadOf(true));
      await clock.advance(5);
      expect([executor.log.length, group.queuedPayloads]).toEqual([count, 1]);
    }
  });

  it("is busy until both batches have run, and has room for one afterwards", async () => {
    const { clock, group } = await groupOf(1, true);
    group.enqueue(payloadOf(true));
    group.enqueue(payloadOf(true));
    expect(group.idleInstances).toBe(0);
    let idle = false;
    void group.idle().then(() => {
      idle = true;
    });
    await clock.advance(11);
    expect(idle).toBe(false);
    await clock.advance(10);
    expect([idle, group.idleInstances]).toEqual([true, 1]);
  });

  it("counts the wait behind the previous batch as queue time", async () => {
    const { clock, group, statistics } = await groupOf(1, true);
    group.enqueue(payloadOf(true));
    group.enqueue(payloadOf(true));
    await clock.advance(30);
    const { queue, computeInput, computeInfer } = statistics;
    expect([queue, computeInput, computeInfer].map(({ count }) => count)).toEqual([2, 2, 2]);
    // The first waits 0 ms, the second until 1 ms before the first is done.
    expect([queue, computeInput, computeInfer].map(({ ns }) => ns / 1e6)).toEqual([10, 2, 20]);
  });
});
