import type { TensorSpec } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EqualInputsRule } from "../../src/batch/payload.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import {
  type BatchDecision,
  type BatchingRules,
  formBatch,
  type PayloadView,
} from "../../src/scheduler/dynamic/form-batch.js";
import type { QueuedRequestView } from "../../src/scheduler/dynamic/priority-queue.js";
import { modelConfig } from "../support/model-config.js";
import { queuedRequest } from "../support/requests.js";

const emptyPayload: PayloadView = { batchSize: 0, cost: 0, requiredEqual: undefined };

const waitingPayload = (batchSize: number): PayloadView => ({ batchSize, cost: 0, requiredEqual: undefined });

function rules(
  given: Partial<BatchingRules> & { readonly inputs?: readonly TensorSpec[] } = {},
): BatchingRules {
  const { inputs, ...rest } = given;
  const maxBatchSize = rest.maxBatchSize ?? 8;
  const equalInputs = new EqualInputsRule(modelConfig({ inputs }));
  return { maxBatchSize, preferredBatchSizes: [maxBatchSize], maxQueueDelayMs: 0, equalInputs, ...rest };
}

function queueOf(...requests: readonly InferenceRequest[]): QueuedRequestView {
  return { head: requests[0], after: (request) => requests[requests.indexOf(request) + 1] };
}

/** A queue of requests with these numbers of rows, all waiting since time 0. */
const rowsQueue = (...rows: readonly number[]) => queueOf(...rows.map((count) => queuedRequest(count)));

/** A decision to take requests and to close the payload. */
const closed = (take: number) => ({ take, closePayload: true });

const variable: readonly TensorSpec[] = [{ name: "x", dtype: "FP32", shape: [-1] }];

const preferred = rules({ preferredBatchSizes: [2, 4], maxQueueDelayMs: 10 });
const delayed = rules({ maxQueueDelayMs: 10 });

describe.each<[string, [string, number[], number, number, BatchingRules, Partial<BatchDecision>][]]>([
  [
    "without a queue delay",
    [
      ["all waiting requests are taken at once", [1, 2, 1], 0, 0, rules(), { take: 3, closePayload: false }],
      [
        "it is cut before the request that would exceed the largest size",
        [3, 3, 3],
        0,
        0,
        rules(),
        closed(2),
      ],
      ["the largest size closes the payload", [4, 4], 0, 0, rules(), closed(2)],
      [
        "a preferred size closes it",
        [1, 1, 1, 1, 1],
        0,
        0,
        rules({ preferredBatchSizes: [2, 4] }),
        closed(4),
      ],
      ["a request of the largest size runs alone", [8, 1], 0, 0, rules(), closed(1)],
      [
        "a payload that waits for an instance keeps growing",
        [1, 1],
        3,
        0,
        rules(),
        { take: 2, closePayload: false },
      ],
      ["a request that does not fit the waiting payload closes it", [6], 3, 0, rules(), closed(0)],
    ],
  ],
  [
    "with preferred sizes",
    [
      ["it is sent before the delay is over", [1, 1], 0, 0, preferred, { take: 2 }],
      ["rows that already wait in the payload count", [1], 1, 0, preferred, { take: 1 }],
      ["a larger size further down the queue supersedes", [1, 1, 1, 1], 0, 0, preferred, { take: 4 }],
      ["it is cut at the last size reached", [1, 1, 1], 0, 0, preferred, { take: 2 }],
      ["a request that exceeds all of them is not held", [3, 3], 0, 0, preferred, closed(1)],
      ["it is not cut when its delay is over", [1, 1, 1], 0, 10, preferred, { take: 3 }],
    ],
  ],
  [
    "with a queue delay",
    [
      ["it is sent when the delay ends", [1], 0, 10, delayed, { take: 1, closePayload: false }],
      ["the largest preferred size ends the delay", [5, 3], 0, 0, delayed, { take: 2 }],
      ["a request that does not fit ends the delay", [5, 4], 0, 0, delayed, closed(1)],
      ["a waiting payload grows at once", [1], 3, 0, delayed, { take: 1, closePayload: false }],
      [
        "the wait ends early at the next preferred size",
        [1, 2],
        0,
        0,
        rules({ maxQueueDelayMs: 10, preferredBatchSizes: [4, 8] }),
        { take: 0, wakeAtRows: 4 },
      ],
      [
        "rows of the payload count towards that size",
        [1],
        2,
        0,
        rules({ maxQueueDelayMs: 10, preferredBatchSizes: [2, 8] }),
        { take: 0, wakeAtRows: 6 },
      ],
    ],
  ],
])("a batch %s", (_, cases) => {
  it.each(cases)("%s", (_title, rows, waiting, now, given, decision) => {
    expect(formBatch(rowsQueue(...rows), waitingPayload(waiting), now, given)).toMatchObject(decision);
  });
});

describe("the queue delay", () => {
  it("starts when the oldest request arrives", () => {
    const head = queueOf(queuedRequest(1, 2), queuedRequest(1, 5));
    expect(formBatch(head, emptyPayload, 6, delayed)).toMatchObject({ take: 0, waitMs: 6 });
  });

  it("ends in spite of rounding errors in fractions of milliseconds", () => {
    const head = queueOf(queuedRequest(1, 0.1));
    expect(formBatch(head, emptyPayload, 0.1 + 0.2, rules({ maxQueueDelayMs: 0.2 })).take).toBe(1);
  });
});

describe("requests of different shapes", () => {
  const row = (columns: number, queueStart = 0) => queuedRequest(1, queueStart, columns);

  it("end the batch at once and saturate the payload", () => {
    const head = queueOf(row(2), row(2), row(3));
    expect(formBatch(head, emptyPayload, 0, rules({ inputs: variable, maxQueueDelayMs: 10 }))).toMatchObject({
      take: 2,
      closePayload: true,
      saturatePayload: true,
    });
  });

  it("are compared with the first request of the payload", () => {
    const first = formBatch(queueOf(row(2)), emptyPayload, 0, rules({ inputs: variable }));
    const payload: PayloadView = { batchSize: 1, cost: 0, requiredEqual: first.requiredEqual };
    expect(formBatch(queueOf(row(2)), payload, 0, rules({ inputs: variable })).take).toBe(1);
    expect(formBatch(queueOf(row(3)), payload, 0, rules({ inputs: variable }))).toMatchObject({
      take: 0,
      saturatePayload: true,
    });
  });

  it("are not compared when dimensions are fixed", () => {
    expect(formBatch(rowsQueue(1, 1), emptyPayload, 0, rules()).requiredEqual).toBeUndefined();
  });
});

describe("an empty queue", () => {
  it("yields no batch", () => {
    expect(formBatch(queueOf(), emptyPayload, 0, rules())).toMatchObject({ take: 0, closePayload: false });
    expect(formBatch(queueOf(), waitingPayload(3), 0, rules({ maxQueueDelayMs: 5 })).take).toBe(0);
  });
});

describe("the cost of a batch", () => {
  const costQueue = (...costs: readonly number[]) =>
    queueOf(
      ...costs.map((cost) => {
        const request = queuedRequest(1);
        request.extra = { cost };
        return request;
      }),
    );
  const bounded = rules({ maxBatchCost: 10, maxQueueDelayMs: 5 });

  it("ends it before the request that would exceed the limit, without waiting for the delay", () => {
    expect(formBatch(costQueue(4, 5, 3), emptyPayload, 0, bounded)).toMatchObject({
      take: 2,
      closePayload: true,
      cut: "COST",
    });
  });

  it("ends it when it reaches the limit", () => {
    expect(formBatch(costQueue(4, 6, 0), emptyPayload, 0, bounded)).toMatchObject({ take: 2, cut: "COST" });
  });

  it("includes the waiting payload, which closes when no further request fits", () => {
    const payload: PayloadView = { batchSize: 1, cost: 8, requiredEqual: undefined };
    expect(formBatch(costQueue(3), payload, 0, bounded)).toMatchObject({
      take: 0,
      closePayload: true,
      cut: "COST",
    });
  });
});

describe("formBatch with random queues", () => {
  const scenario = fc.record({
    rows: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 12 }),
    base: fc.nat({ max: 8 }),
    preferred: fc.uniqueArray(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 3 }),
    delay: fc.constantFrom(0, 5),
    now: fc.constantFrom(0, 3, 5, 9),
  });

  it("never exceeds the largest size, and returns a batch or a time to try again", () => {
    fc.assert(
      fc.property(scenario, ({ rows, base, preferred, delay, now }) => {
        const preferredBatchSizes = preferred.sort((a, b) => a - b);
        const given = rules({ preferredBatchSizes, maxQueueDelayMs: delay });
        const decision = formBatch(rowsQueue(...rows), waitingPayload(base), now, given);
        const taken = rows.slice(0, decision.take).reduce((sum, count) => sum + count, 0);
        if (decision.take > 0) expect(base + taken).toBeLessThanOrEqual(8);
        if (decision.take === 0) expect(decision.closePayload || decision.waitMs !== undefined).toBe(true);
        if (decision.waitMs !== undefined) {
          expect(decision.waitMs).toBeGreaterThan(0);
          expect(decision.waitMs).toBeLessThanOrEqual(delay);
        }
        // The delay is over for a fresh payload.
        expect(formBatch(rowsQueue(...rows), emptyPayload, delay, given).take).toBeGreaterThan(0);
      }),
      { numRuns: 300 },
    );
  });
});
