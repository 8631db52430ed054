import type { ModelDynamicBatching } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { Payload } from "../../src/batch/payload.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { OrderedResponses } from "../../src/scheduler/dynamic/ordered-responses.js";
import { PriorityQueue } from "../../src/scheduler/dynamic/priority-queue.js";
import { DeadlineQueue, VirtualClock } from "../../src/system/clock.js";
import { queuedRequest } from "../support/requests.js";

const MANY = 100_000;
const FEW = 1000;
/** One request in this many is watched, because watching makes objects slow. */
const WATCHED = 10;

/** Counts reads and writes of the links of requests; each step through a list is one of them. */
class StepCounter {
  steps = 0;

  watch(request: InferenceRequest): void {
    for (const link of ["next", "previous", "holder"] as const) {
      let value: unknown = request[link];
      Object.defineProperty(request, link, {
        get: () => {
          this.steps++;
          return value;
        },
        set: (given: unknown) => {
          this.steps++;
          value = given;
        },
      });
    }
  }
}

const batching: ModelDynamicBatching = {
  preferredBatchSize: [8],
  maxQueueDelayMicroseconds: 0,
  preserveOrdering: false,
  priorityLevels: 0,
  defaultPriorityLevel: 0,
  priorityQueuePolicy: {},
};

function shuffled(requests: readonly InferenceRequest[]): InferenceRequest[] {
  const random = new SeededRandom(7);
  const mixed = [...requests];
  for (let i = mixed.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [mixed[i], mixed[j]] = [mixed[j]!, mixed[i]!];
  }
  return mixed;
}

describe.each([
  ["oldest first", MANY / 10, (requests: readonly InferenceRequest[]) => requests],
  ["newest first", MANY / 10, (requests: readonly InferenceRequest[]) => [...requests].reverse()],
  ["in any order", MANY, shuffled],
] as const)("cancelling many requests at once, %s", (_, many, inOrder) => {
  /** Steps per request to cancel all of them. */
  function stepsEach(count: number): number {
    const counter = new StepCounter();
    const clock = new VirtualClock();
    const queue = new PriorityQueue(
      batching,
      new DeadlineQueue(clock),
      () => clock.now(),
      () => {},
    );
    const requests = Array.from({ length: count }, () => queuedRequest(1));
    requests.forEach((request, i) => {
      if (i % WATCHED === 0) counter.watch(request);
      queue.push(request);
    });
    counter.steps = 0;
    for (const request of inOrder(requests)) request.cancel();
    expect([queue.totals.size, queue.totals.rows, queue.head]).toEqual([0, 0, undefined]);
    return (counter.steps * WATCHED) / count;
  }

  it("removes each from the queue in a constant number of steps", () => {
    const each = stepsEach(FEW);
    expect(stepsEach(many)).toBeLessThan(1.5 * each);
    expect(each).toBeLessThan(25);
  });

  it("removes them from a waiting batch and from the ordered responses", () => {
    const payload = new Payload();
    const ordered = new OrderedResponses();
    const requests = Array.from({ length: many }, () => queuedRequest(1));
    for (const request of requests) {
      payload.add(request);
      ordered.admit(request);
    }
    const last = queuedRequest(1);
    let answered = false;
    ordered.admit(last);
    last.gate!.pass(() => {
      answered = true;
    }, true);
    for (const request of inOrder(requests)) request.cancel();
    expect([payload.requestCount, payload.batchSize, answered]).toEqual([0, 0, true]);
  });
});

describe("the deadline queue", () => {
  /** Comparisons of deadlines per entry to add and cancel all of them. */
  function comparisonsEach(count: number): number {
    const clock = new VirtualClock();
    const queue = new DeadlineQueue(clock);
    const random = new SeededRandom(3);
    let comparisons = 0;
    const entries = Array.from({ length: count }, () => {
      const at = 1000 + random.below(1_000_000);
      const entry = queue.add(at, () => {});
      Object.defineProperty(entry, "at", {
        get: () => {
          comparisons++;
          return at;
        },
      });
      return entry;
    });
    for (const entry of entries) entry.cancel();
    expect(queue.size).toBe(0);
    return comparisons / count;
  }

  it("cancels with at most a logarithmic number of comparisons", () => {
    const logOf = (count: number) => Math.log2(count);
    const growth = comparisonsEach(MANY) / comparisonsEach(FEW);
    expect(growth).toBeLessThan((1.5 * logOf(MANY)) / logOf(FEW));
  });
});
