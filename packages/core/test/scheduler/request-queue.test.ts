import type { ModelDynamicBatching } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { Payload } from "../../src/batch/payload.js";
import { defaultQueuePolicy } from "../../src/config/defaults.js";
import { planInstances } from "../../src/config/instance-groups.js";
import { InstanceGroup } from "../../src/instance/instance-group.js";
import { ModelInstance } from "../../src/instance/model-instance.js";
import { ModelStatistics } from "../../src/observe/statistics.js";
import { InferenceRequest } from "../../src/request/inference-request.js";
import { FairShares } from "../../src/scheduler/fair-shares.js";
import { InstanceTimes, LearnedTimes } from "../../src/scheduler/learned-times.js";
import { freePlacesOf, Heap, RequestQueue } from "../../src/scheduler/priority-queue.js";
import { VirtualClock } from "../../src/system/clock.js";
import { instanceOwner } from "../support/instance-owner.js";
import { modelConfig } from "../support/model-config.js";
import { queuedRequest } from "../support/requests.js";

function request(caller: string, rows = 1): InferenceRequest {
  const one = new InferenceRequest("m", { inputs: new Map(), caller });
  one.batchSize = rows;
  return one;
}

/** Adds a request of each name, and returns the names in the order of shares. */
function order(shares: FairShares, names: readonly string[]): string[] {
  const all = names.map((name) => {
    const one = request(name);
    shares.place(one);
    shares.joined(one);
    return one;
  });
  return all.sort((a, b) => a.order - b.order).map(({ caller }) => caller);
}

describe("fair shares", () => {
  it("let a caller that comes later go between the requests of one that sent many", () => {
    const shares = new FairShares({ by: "caller" }, 1);
    const names = order(shares, ["a", "a", "a", "b", "b"]);
    expect(names).toEqual(["a", "b", "a", "b", "a"]);
  });

  it("give a caller with twice the weight twice the turns", () => {
    const shares = new FairShares({ by: "caller", weights: { b: 2 } }, 1);
    const names = order(shares, [...Array(9).fill("a"), ...Array(9).fill("b")]);
    expect(names.slice(0, 9).filter((name) => name === "b")).toHaveLength(6);
  });

  it("charge by rows, or by the cost of a request where the model says it", () => {
    const shares = new FairShares({ by: "caller" }, 1);
    const large = request("a", 8);
    shares.place(large);
    shares.joined(large);
    const costly = request("b");
    costly.batchCost = 20;
    shares.place(costly);
    shares.joined(costly);
    expect([large.share!.account.finish - large.order, costly.share!.account.finish - costly.order]).toEqual([
      8, 20,
    ]);
  });

  it("give the cost of a request that leaves without having run back", () => {
    const shares = new FairShares({ by: "caller" }, 1);
    const [first, second] = [request("a"), request("a")];
    for (const one of [first, second]) {
      shares.place(one);
      shares.joined(one);
    }
    const before = second.share!.account.finish;
    shares.left(second);
    expect(second.share!.account.finish).toBe(before - 1);
  });

  it("charge a function's name, a header or a parameter", () => {
    const byPriority = new FairShares({ by: ({ priority }) => `p${priority}` }, 1);
    const one = request("x");
    one.priority = 3;
    byPriority.place(one);
    expect(one.share!.account.name).toBe("p3");
    const byHeader = new FairShares({ by: "tenant" }, 1);
    const named = request("header");
    byHeader.place(named);
    const parameter = new InferenceRequest("m", { inputs: new Map(), parameters: { tenant: "t" } });
    byHeader.place(parameter);
    expect([named.share!.account.name, parameter.share!.account.name]).toEqual(["header", "t"]);
  });

  it("share the time by the weights whatever callers send, and remember a bounded number of callers", () => {
    const random = new SeededRandom(7);
    const weights = { a: 1, b: 3, c: 6 };
    const shares = new FairShares({ by: "caller", weights }, 4);
    const queue: InferenceRequest[] = [];
    const served = { a: 0, b: 0, c: 0 };
    for (let turn = 0; turn < 20_000; turn++) {
      for (const name of ["a", "b", "c"] as const) {
        while (queue.filter(({ caller }) => caller === name).length < 8) {
          const one = request(name, 1 + random.below(4));
          shares.place(one);
          shares.joined(one);
          queue.push(one);
        }
      }
      queue.sort((x, y) => x.order - y.order);
      const next = queue.shift()!;
      shares.ran(next);
      served[next.caller as keyof typeof served] += next.rows;
    }
    const sum = served.a + served.b + served.c;
    expect(served.a / sum).toBeCloseTo(0.1, 2);
    expect(served.b / sum).toBeCloseTo(0.3, 2);
    expect(served.c / sum).toBeCloseTo(0.6, 2);
    for (let i = 0; i < 10_000; i++) {
      const one = request(`caller ${i}`);
      shares.place(one);
      shares.joined(one);
      shares.ran(one);
      const next = request("a");
      shares.place(next);
      shares.joined(next);
      shares.ran(next);
    }
    expect(shares.size).toBeLessThan(1100);
  });
});

/** Teaches batches of random sizes. */
function taught(durationMs: (rows: number) => number, maxRows = 32, batches = 400): InstanceTimes {
  const random = new SeededRandom(3);
  const times = new InstanceTimes(maxRows);
  for (let i = 0; i < batches; i++) {
    const rows = 1 + random.below(maxRows);
    times.learn(rows, durationMs(rows));
  }
  return times;
}

describe("the learned times of an instance", () => {
  it("are unknown before five batches", () => {
    const times = new InstanceTimes(8);
    for (let i = 0; i < 4; i++) times.learn(1, 10);
    expect(times.known).toBe(false);
    times.learn(1, 10);
    expect(times.known).toBe(true);
    expect(times.expectedMs(1)).toBeCloseTo(10, 5);
  });

  it("follow a line, beyond the sizes that have run too", () => {
    const times = taught((rows) => 10 + 0.5 * rows, 16, 2000);
    for (const rows of [1, 7, 16]) expect(times.expectedMs(rows)).toBeCloseTo(10 + 0.5 * rows, 1);
    expect(times.expectedMs(32)).toBeCloseTo(36, 0);
    expect(times.largestWithin(14.2)).toBe(8);
    expect(times.largestWithin(1)).toBe(1);
    expect(times.best).toBe(16);
  });

  it("follow steps, as of a model that pads its batches to powers of two", () => {
    const padded = (rows: number) => 4 + 2 ** Math.ceil(Math.log2(rows));
    const times = taught(padded, 32, 2000);
    for (const rows of [3, 8, 9, 16, 17, 32]) {
      expect(Math.abs(times.expectedMs(rows) / padded(rows) - 1)).toBeLessThan(0.1);
    }
  });

  it("plan with the usual deviation", () => {
    const random = new SeededRandom(5);
    const times = taught(() => 10 * (0.8 + 0.4 * random.next()), 4, 1000);
    expect(times.spread).toBeGreaterThan(0.06);
    expect(times.spread).toBeLessThan(0.14);
    expect(times.plannedMs(2)).toBeGreaterThan(1.08 * times.expectedMs(2));
  });

  it("say no top rate while only much smaller batches have run", () => {
    const times = new InstanceTimes(32);
    for (let i = 0; i < 10; i++) times.learn(1 + (i % 2), 10);
    expect(times.topRowsPerMs).toBe(Number.POSITIVE_INFINITY);
    for (let i = 0; i < 10; i++) times.learn(32, 26);
    expect(times.topRowsPerMs).toBeCloseTo(32 / 26, 1);
  });

  it("are hardly moved by one outlier, and follow a lasting change", () => {
    const times = taught((rows) => 10 + rows, 8);
    times.learn(4, 5000);
    expect(times.expectedMs(4)).toBeLessThan(16);
    for (let i = 0; i < 300; i++) times.learn(4, 28);
    expect(times.expectedMs(4)).toBeGreaterThan(25);
  });
});

describe("the learned times of all instances", () => {
  it("learn nothing of batches whose requests are all over before they begin", () => {
    const clock = new VirtualClock();
    const executor = {
      details: {},
      mustFinish: false,
      start: async () => {},
      stop: async () => {},
      execute: async () => undefined,
    };
    const [plan] = planInstances(modelConfig());
    const instance = new ModelInstance(plan!, executor, instanceOwner(clock, new ModelStatistics()));
    const times = new LearnedTimes(new InstanceGroup([instance], clock), 8);
    const tookMs = (begin: number, end: number, leave?: "late" | "cancelled") => {
      const payload = new Payload();
      const request = queuedRequest(2);
      if (leave === "late") request.deadline = begin;
      payload.add(request);
      payload.take();
      if (leave === "cancelled") request.cancel();
      times.started(instance, payload, begin);
      return times.ended(instance, payload, end);
    };
    expect(tookMs(0, 0.01, "late")).toBeUndefined();
    expect(tookMs(1, 1.01, "cancelled")).toBeUndefined();
    expect(tookMs(2, 22)).toBe(20);
  });
});

describe("heap", () => {
  it("a heap returns the smallest item first, whatever the order of pushes and pops", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.nat(50)), { maxLength: 60 }), (steps) => {
        const heap = new Heap<number>((a, b) => a - b);
        const model: number[] = [];
        for (const value of steps) {
          if (value === null) {
            model.sort((a, b) => a - b);
            expect(heap.take()).toBe(model.shift());
          } else {
            heap.add(value);
            model.push(value);
          }
        }
      }),
    );
  });
});

const limited = (maxQueueSize: number) => ({ ...defaultQueuePolicy(), maxQueueSize });

const batching: ModelDynamicBatching = {
  preferredBatchSize: [8],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
  priorityLevels: 0,
  defaultPriorityLevel: 0,
  priorityQueuePolicy: {},
};

const levels = (one: number, two: number): ModelDynamicBatching => ({
  ...batching,
  priorityLevels: 2,
  defaultPriorityLevel: 2,
  priorityQueuePolicy: { 1: limited(one), 2: limited(two) },
});

describe("the free places of a queue", () => {
  it("are infinite without a limit", () => {
    expect(freePlacesOf(batching, () => 1000)).toBe(Number.POSITIVE_INFINITY);
  });

  it("are the limit less the waiting requests, and never negative", () => {
    const bounded = { ...batching, defaultQueuePolicy: limited(10) };
    expect([0, 7, 10, 12].map((size) => freePlacesOf(bounded, () => size))).toEqual([10, 3, 0, 0]);
  });

  it("are those of the level of a priority, or of the default level", () => {
    const sizeOf = (level: number) => ({ 1: 2, 2: 5 })[level]!;
    expect([1, 2, 0].map((priority) => freePlacesOf(levels(4, 6), sizeOf, priority))).toEqual([2, 1, 1]);
  });

  it("are those of the level with the most room when the priority is unknown", () => {
    const sizeOf = (level: number) => ({ 1: 4, 2: 5 })[level]!;
    expect(freePlacesOf(levels(4, 6), sizeOf)).toBe(1);
    expect(freePlacesOf(levels(4, 5), sizeOf)).toBe(0);
  });
});

function waiting(queue: RequestQueue): InferenceRequest[] {
  const requests: InferenceRequest[] = [];
  for (let request = queue.head; request !== undefined; request = request.next) requests.push(request);
  return requests;
}

describe("a request queue", () => {
  it("has the request that has waited longest at its head", () => {
    const totals = { size: 0, rows: 0 };
    const queue = new RequestQueue(totals);
    const requests = [1, 2, 3].map((rows) => queuedRequest(rows));
    for (const request of requests) queue.push(request);
    expect([queue.size, totals]).toEqual([3, { size: 3, rows: 6 }]);
    for (const request of requests) {
      expect(queue.head).toBe(request);
      queue.remove(request);
    }
    expect([queue.size, queue.head, totals]).toEqual([0, undefined, { size: 0, rows: 0 }]);
  });

  it("behaves like a list under any mix of pushes, shifts and cancellations", () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ do: fc.constant("push" as const), rows: fc.integer({ min: 1, max: 4 }) }),
        fc.record({ do: fc.constant("shift" as const) }),
        fc.record({ do: fc.constant("cancel" as const), at: fc.nat({ max: 30 }) }),
      ),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        const totals = { size: 0, rows: 0 };
        const queue = new RequestQueue(totals);
        const list: InferenceRequest[] = [];
        for (const step of all) {
          if (step.do === "push") {
            const request = queuedRequest(step.rows);
            queue.push(request);
            list.push(request);
          } else if (step.do === "shift") {
            expect(queue.head).toBe(list[0]);
            if (queue.head !== undefined) queue.remove(queue.head);
            list.shift();
          } else if (list.length > 0) {
            list.splice(step.at % list.length, 1)[0]!.cancel();
          }
        }
        expect(waiting(queue)).toEqual(list);
        expect(queue.size).toBe(list.length);
        expect(totals).toEqual({
          size: list.length,
          rows: list.reduce((sum, request) => sum + request.rows, 0),
        });
      }),
    );
  });

  it("leaves no links behind in a removed request", () => {
    const queue = new RequestQueue();
    const [first, second, third] = [queuedRequest(1), queuedRequest(1), queuedRequest(1)];
    for (const request of [first, second, third]) queue.push(request);
    second.cancel();
    expect([second.next, second.previous, second.holder, second.inputs.size]).toEqual([
      undefined,
      undefined,
      undefined,
      0,
    ]);
    expect(waiting(queue)).toEqual([first, third]);
  });
});
