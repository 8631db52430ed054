import { type Tensor, TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { EqualInputsRule, Payload } from "../../src/batch/payload.js";
import { planInstances } from "../../src/config/instance-groups.js";
import type { Execution, ExecutionResult, Executor } from "../../src/instance/backend.js";
import { InstanceGroup, type InstanceUser } from "../../src/instance/instance-group.js";
import { ModelInstance } from "../../src/instance/model-instance.js";
import { LoopShare } from "../../src/instance/run-callable.js";
import { ModelStatistics } from "../../src/observe/statistics.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { VirtualClock } from "../../src/system/clock.js";
import { BatchesOfWorker } from "../../src/worker/worker-executor.js";
import { instanceOwner } from "../support/instance-owner.js";
import { modelConfig } from "../support/model-config.js";
import { queuedRequest } from "../support/requests.js";

/** Runs nothing: each batch waits until the test releases it. */
class HeldExecutor implements Executor {
  readonly details = {};
  readonly mustFinish = false;
  readonly batches: number[][] = [];
  onHealth: Executor["onHealth"];
  #finish = () => {};

  async start(): Promise<void> {}
  async stop(): Promise<void> {}

  execute({ requests }: Execution): Promise<Map<string, Tensor>[]> {
    this.batches.push(requests.map(({ rows }) => rows));
    return new Promise((resolve) => {
      this.#finish = () => resolve(requests.map(() => new Map<string, Tensor>()));
    });
  }

  finish(): void {
    this.#finish();
  }
}

/** A group of one instance that is busy with a batch of one row. */
async function busyGroup(user: InstanceUser = {}) {
  const clock = new VirtualClock();
  const executor = new HeldExecutor();
  const instance = new ModelInstance(planInstances(modelConfig())[0]!, executor, instanceOwner(clock));
  const group = new InstanceGroup([instance], clock);
  group.serve({ maxBatchSize: 4, ...user });
  await group.start();
  group.enqueue(payloadOf(queuedRequest(1)));
  await clock.settle();
  return { clock, executor, group };
}

function payloadOf(...requests: readonly InferenceRequest[]): Payload {
  const payload = new Payload();
  for (const request of requests) payload.add(request);
  return payload;
}

/** Batches that run after the first one, when these payloads have waited for 10 ms. */
async function batchesOf(mergeAfterMs: number, ...payloads: readonly Payload[]): Promise<number[][]> {
  const { clock, executor, group } = await busyGroup({ mergeAfterMs });
  for (const payload of payloads) group.enqueue(payload);
  await clock.advance(10);
  while (executor.batches.length <= payloads.length && group.instances[0]!.busy) {
    executor.finish();
    await clock.settle();
  }
  return executor.batches.slice(1);
}

describe("payloads that wait for an instance", () => {
  it("are joined when both have waited longer than the delay and fit together", async () => {
    expect(await batchesOf(5, payloadOf(queuedRequest(1)), payloadOf(queuedRequest(2)))).toEqual([[1, 2]]);
  });

  it("are not joined without a delay", async () => {
    expect(await batchesOf(0, payloadOf(queuedRequest(1)), payloadOf(queuedRequest(2)))).toEqual([[1], [2]]);
  });

  it("are not joined beyond the largest batch size", async () => {
    expect(await batchesOf(5, payloadOf(queuedRequest(3)), payloadOf(queuedRequest(2)))).toEqual([[3], [2]]);
  });

  it("are not joined while the second has not waited as long as the delay", async () => {
    expect(await batchesOf(5, payloadOf(queuedRequest(1)), payloadOf(queuedRequest(2, 9)))).toEqual([
      [1],
      [2],
    ]);
  });

  it("are not joined when either is saturated", async () => {
    for (const saturated of [0, 1]) {
      const payloads = [payloadOf(queuedRequest(1)), payloadOf(queuedRequest(2))];
      payloads[saturated]!.saturated = true;
      expect(await batchesOf(5, ...payloads)).toEqual([[1], [2]]);
    }
  });

  it("are not joined when their shapes differ", async () => {
    const rule = new EqualInputsRule(modelConfig({ inputs: [{ name: "x", dtype: "FP32", shape: [-1] }] }));
    const [first, second] = [queuedRequest(1, 0, 2), queuedRequest(2, 0, 3)];
    const payloads = [payloadOf(first), payloadOf(second)];
    payloads[0]!.requiredEqual = rule.startWith(first.inputs);
    expect(await batchesOf(5, ...payloads)).toEqual([[1], [2]]);
  });

  it("leave when their last request is cancelled, and report the free slot", async () => {
    const { group } = await busyGroup();
    let freed = 0;
    group.serve({ slotFreed: () => freed++ });
    const request = queuedRequest(1);
    const payload = payloadOf(request);
    group.enqueue(payload);
    request.cancel();
    expect([group.queuedPayloads, payload.state, freed]).toEqual([0, "taken", 1]);
  });
});

describe("instances that failed for good", () => {
  it("tell their scheduler of the place of one that recovers: it may have formed no batch meanwhile", async () => {
    const places: number[] = [];
    let watched: InstanceGroup | undefined;
    const { clock, executor, group } = await busyGroup({
      slotFreed: () => void places.push(watched?.idleInstances ?? 0),
    });
    watched = group;
    executor.onHealth?.(false);
    executor.finish();
    await clock.settle();
    expect(places).not.toContain(1);
    executor.onHealth?.(true);
    expect(places.at(-1)).toBe(1);
  });

  it("fail waiting and new requests until one of them recovers", async () => {
    const { clock, executor, group } = await busyGroup();
    const [waiting, late, later] = [queuedRequest(1), queuedRequest(1), queuedRequest(1)];
    group.enqueue(payloadOf(waiting));
    const reason = new TritonError("UNAVAILABLE", "gone");
    executor.onHealth?.(false);
    expect([waiting.settled, group.unhealthyReason]).toEqual([false, undefined]);
    executor.onHealth?.(false, reason);
    group.enqueue(payloadOf(late));
    expect([waiting.cancelReason, late.cancelReason, group.queuedPayloads]).toEqual([reason, reason, 0]);
    executor.onHealth?.(true);
    executor.finish();
    await clock.settle();
    group.enqueue(payloadOf(later));
    expect([later.executing, group.unhealthyReason]).toEqual([true, undefined]);
  });
});

describe("instance group batches ahead", () => {
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
});

/** A share whose clock and turns of the event loop the test moves. */
function shareInTest() {
  const deferred: (() => void)[] = [];
  let now = 0;
  const clock = { now: () => now, defer: (run: () => void) => void deferred.push(run) };
  const share = new LoopShare(clock);
  const pass = (ms: number) => {
    now += ms;
  };
  return {
    share,
    deferred,
    pass,
    /** Runs a callback that takes this long. */
    run(ms: number) {
      const turn = share.begin();
      pass(ms);
      share.end(turn);
    },
    turn: () => deferred.splice(0).forEach((run) => void run()),
    /** Ends the present event. */
    event: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
}

describe("loop share", () => {
  it("is spent by callbacks that took 2 ms together, and renewed by the next turn of the event loop", async () => {
    const { share, deferred, pass, run, event, turn } = shareInTest();
    pass(10);
    expect(share.isSpent).toBe(false);
    run(1.5);
    await event();
    run(0.4);
    expect(share.isSpent).toBe(false);
    await event();
    run(0.1);
    expect(share.isSpent).toBe(true);
    expect(deferred).toHaveLength(1);
    turn();
    expect(share.isSpent).toBe(false);
    run(1.5);
    expect(share.isSpent).toBe(false);
  });

  it("does not count what the event loop does between callbacks, up to 50 ms", async () => {
    const { share, pass, run, event } = shareInTest();
    for (let i = 0; i < 9; i++) {
      run(0.1);
      await event();
      pass(5);
      expect(share.isSpent).toBe(false);
    }
    pass(5);
    expect(share.isSpent).toBe(true);
  });

  it("is spent by one event that led to callbacks and took 2 ms with all that they caused", async () => {
    const { share, pass, run, event } = shareInTest();
    run(0.1);
    pass(1.8);
    expect(share.isSpent).toBe(false);
    run(0.1);
    expect(share.isSpent).toBe(true);
    await event();
    expect(share.isSpent).toBe(false);
  });

  it("counts callbacks that overlap once, and those at work", async () => {
    const { share, pass, event } = shareInTest();
    const first = share.begin();
    pass(0.5);
    const second = share.begin();
    pass(0.5);
    share.end(first);
    await event();
    expect(share.isSpent).toBe(false);
    pass(0.9);
    expect(share.isSpent).toBe(false);
    pass(0.2);
    expect(share.isSpent).toBe(true);
    share.end(second);
    expect(share.isSpent).toBe(true);
  });

  it("does not count a callback of an earlier turn", async () => {
    const { share, pass, run, event, turn } = shareInTest();
    const waiting = share.begin();
    turn();
    await event();
    run(0.1);
    pass(5);
    share.end(waiting);
    await event();
    expect(share.isSpent).toBe(false);
  });

  it("calls each waiting listener once and in order, and lets the rest wait when the new share is spent", () => {
    const { share, pass, turn } = shareInTest();
    const log: string[] = [];
    const waits = (name: string) => () => {
      if (share.isSpent) return share.whenRenewed(listeners[name]!);
      log.push(name);
      share.begin();
      pass(3);
    };
    const listeners: Record<string, () => void> = { a: waits("a"), b: waits("b") };
    share.begin();
    pass(3);
    share.whenRenewed(listeners.a!);
    share.whenRenewed(listeners.b!);
    share.whenRenewed(listeners.a!);
    turn();
    expect(log).toEqual(["a"]);
    turn();
    turn();
    expect(log).toEqual(["a", "b"]);
  });
});
