import type { ModelDynamicBatching } from "@tritonjs/protocol";
import { defaultQueuePolicy } from "@tritonjs/protocol/config";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { freePlacesOf, Heap, RequestQueue } from "../../src/scheduler/dynamic/priority-queue.js";
import { queuedRequest } from "../support/requests.js";

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
