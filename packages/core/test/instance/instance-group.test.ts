import { type Tensor, TritonError } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { EqualInputsRule, Payload } from "../../src/batch/payload.js";
import { planInstances } from "../../src/config/instance-groups.js";
import type { Execution, Executor } from "../../src/instance/backend.js";
import { InstanceGroup, type InstanceUser } from "../../src/instance/instance-group.js";
import { ModelInstance } from "../../src/instance/model-instance.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { VirtualClock } from "../../src/system/clock.js";
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
