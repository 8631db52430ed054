import type { TensorSpec } from "@tritonjs/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EqualInputsRule } from "../../src/batch/payload.js";
import type { InferenceRequest } from "../../src/request/inference-request.js";
import { type BatchingRules, formBatch, type PayloadView } from "../../src/scheduler/form-batch.js";
import type { QueuedRequestView } from "../../src/scheduler/priority-queue.js";
import { modelConfig } from "../support/model-config.js";
import { queuedRequest, requestWith } from "../support/requests.js";
import { ones } from "../support/tensors.js";

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

const variable: readonly TensorSpec[] = [{ name: "x", dtype: "FP32", shape: [-1] }];

describe("without a queue delay", () => {
  it("all waiting requests are taken at once", () => {
    const decision = formBatch(rowsQueue(1, 2, 1), emptyPayload, 0, rules());
    expect(decision).toMatchObject({ take: 3, closePayload: false, saturatePayload: false });
    expect(decision.waitMs).toBeUndefined();
  });

  it("the batch is cut before the request that would exceed the largest size", () => {
    expect(formBatch(rowsQueue(3, 3, 3), emptyPayload, 0, rules())).toMatchObject({
      take: 2,
      closePayload: true,
    });
  });

  it("a batch of exactly the largest size closes the payload", () => {
    expect(formBatch(rowsQueue(4, 4), emptyPayload, 0, rules())).toMatchObject({
      take: 2,
      closePayload: true,
    });
  });

  it("a batch of a preferred size closes the payload, and the rest waits", () => {
    const decision = formBatch(
      rowsQueue(1, 1, 1, 1, 1),
      emptyPayload,
      0,
      rules({ preferredBatchSizes: [2, 4] }),
    );
    expect(decision).toMatchObject({ take: 4, closePayload: true });
  });

  it("a request of the largest size runs alone", () => {
    expect(formBatch(rowsQueue(8, 1), emptyPayload, 0, rules())).toMatchObject({
      take: 1,
      closePayload: true,
    });
  });

  it("a payload that waits for an instance keeps growing", () => {
    expect(formBatch(rowsQueue(1, 1), waitingPayload(3), 0, rules())).toMatchObject({
      take: 2,
      closePayload: false,
    });
  });

  it("a request that does not fit the waiting payload closes it", () => {
    expect(formBatch(rowsQueue(6), waitingPayload(3), 0, rules())).toMatchObject({
      take: 0,
      closePayload: true,
    });
  });
});

describe("preferred batch sizes", () => {
  const preferred = rules({ preferredBatchSizes: [2, 4], maxQueueDelayMs: 10 });

  it("send a batch before the delay is over", () => {
    expect(formBatch(rowsQueue(1, 1), emptyPayload, 0, preferred)).toMatchObject({ take: 2 });
  });

  it("count rows that already wait in the payload", () => {
    expect(formBatch(rowsQueue(1), waitingPayload(1), 0, preferred)).toMatchObject({ take: 1 });
  });

  it("are superseded by a larger one further down the queue", () => {
    expect(formBatch(rowsQueue(1, 1, 1, 1), emptyPayload, 0, preferred)).toMatchObject({ take: 4 });
  });

  it("cut at the last size reached when the queue goes past it", () => {
    expect(formBatch(rowsQueue(1, 1, 1), emptyPayload, 0, preferred)).toMatchObject({ take: 2 });
  });

  it("do not hold requests that exceed all of them; the batch is cut at that request", () => {
    expect(formBatch(rowsQueue(3, 3), emptyPayload, 0, preferred)).toMatchObject({
      take: 1,
      closePayload: true,
    });
  });

  it("do not cut a batch whose delay is over", () => {
    expect(formBatch(rowsQueue(1, 1, 1), emptyPayload, 10, preferred)).toMatchObject({ take: 3 });
  });
});

describe("the queue delay", () => {
  const delayed = rules({ maxQueueDelayMs: 10 });

  it("starts when the oldest request arrives", () => {
    const head = queueOf(queuedRequest(1, 2), queuedRequest(1, 5));
    expect(formBatch(head, emptyPayload, 6, delayed)).toMatchObject({ take: 0, waitMs: 6 });
  });

  it("ends early when the next preferred size is reached", () => {
    const decision = formBatch(
      rowsQueue(1, 2),
      emptyPayload,
      0,
      rules({ ...delayed, preferredBatchSizes: [4, 8] }),
    );
    expect(decision).toMatchObject({ take: 0, wakeAtRows: 4 });
  });

  it("counts the rows of the payload towards the size it waits for", () => {
    const sizes = rules({ maxQueueDelayMs: 10, preferredBatchSizes: [2, 8] });
    expect(formBatch(rowsQueue(1), waitingPayload(2), 0, sizes)).toMatchObject({ take: 0, wakeAtRows: 6 });
  });

  it("ends with a batch of all waiting requests", () => {
    expect(formBatch(rowsQueue(1), emptyPayload, 10, delayed)).toMatchObject({
      take: 1,
      closePayload: false,
    });
  });

  it("ends in spite of rounding errors in fractions of milliseconds", () => {
    const head = queueOf(queuedRequest(1, 0.1));
    expect(formBatch(head, emptyPayload, 0.1 + 0.2, rules({ maxQueueDelayMs: 0.2 }))).toMatchObject({
      take: 1,
    });
  });

  it("is skipped when the largest preferred size is reached", () => {
    expect(formBatch(rowsQueue(5, 3), emptyPayload, 0, delayed)).toMatchObject({ take: 2 });
  });

  it("is skipped when the next request does not fit", () => {
    expect(formBatch(rowsQueue(5, 4), emptyPayload, 0, delayed)).toMatchObject({
      take: 1,
      closePayload: true,
    });
  });

  it("is skipped when a payload below a preferred size already waits: the payload grows at once", () => {
    expect(formBatch(rowsQueue(1), waitingPayload(3), 0, delayed)).toMatchObject({
      take: 1,
      closePayload: false,
    });
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

  it("are not skipped in search of a matching one", () => {
    expect(
      formBatch(queueOf(row(2), row(3), row(2)), emptyPayload, 0, rules({ inputs: variable })).take,
    ).toBe(1);
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

describe("requests with different optional inputs", () => {
  const inputs: readonly TensorSpec[] = [
    { name: "x", dtype: "FP32", shape: [2] },
    { name: "z", dtype: "FP32", shape: [2], optional: true },
  ];
  const both = () => requestWith({ x: ones(1, 2), z: ones(1, 2) });
  const one = () => requestWith({ x: ones(1, 2) });

  it("end the batch", () => {
    expect(formBatch(queueOf(both(), both(), one()), emptyPayload, 0, rules({ inputs }))).toMatchObject({
      take: 2,
      saturatePayload: true,
    });
    expect(formBatch(queueOf(one(), both()), emptyPayload, 0, rules({ inputs })).take).toBe(1);
  });
});

describe("an empty queue", () => {
  it("yields no batch", () => {
    expect(formBatch(queueOf(), emptyPayload, 0, rules())).toMatchObject({ take: 0, closePayload: false });
    expect(formBatch(queueOf(), waitingPayload(3), 0, rules({ maxQueueDelayMs: 5 })).take).toBe(0);
  });
});

describe("a batching decision", () => {
  it("is repeatable, because it changes neither queue nor payload", () => {
    const head = rowsQueue(1, 2, 3);
    const decide = () => formBatch(head, waitingPayload(2), 1, rules({ maxQueueDelayMs: 4 }));
    expect(decide()).toEqual(decide());
    expect(decide().take).toBe(3);
  });
});

describe("the reason for cutting a batch", () => {
  const cut = (queue: QueuedRequestView, given: Parameters<typeof rules>[0] = {}, now = 0) =>
    formBatch(queue, emptyPayload, now, rules(given)).cut;

  it("is SIZE for a full batch and where the next request would exceed it", () => {
    expect([cut(rowsQueue(4, 4)), cut(rowsQueue(4, 3, 2)), cut(rowsQueue(8, 1))]).toEqual([
      "SIZE",
      "SIZE",
      "SIZE",
    ]);
  });

  it("is PREFERRED at a preferred size below the largest", () => {
    expect(cut(rowsQueue(1, 1, 1), { preferredBatchSizes: [2] })).toBe("PREFERRED");
  });

  it("is DELAY when the oldest request has waited long enough", () => {
    expect(cut(rowsQueue(1), { maxQueueDelayMs: 10 }, 10)).toBe("DELAY");
  });

  it("is SHAPE when the next request differs", () => {
    expect(cut(queueOf(queuedRequest(1, 0, 2), queuedRequest(1, 0, 3)), { inputs: variable })).toBe("SHAPE");
  });

  it("is unset while all requests are taken or wait for more", () => {
    expect([cut(rowsQueue(1, 1)), cut(rowsQueue(1), { maxQueueDelayMs: 10 })]).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe("the cost of a batch", () => {
  const costQueue = (...costs: readonly number[]) =>
    queueOf(
      ...costs.map((cost) => {
        const request = queuedRequest(1);
        request.batchCost = cost;
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

describe("form batch invariants", () => {
  const scenario = fc.record({
    rows: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 12 }),
    base: fc.nat({ max: 8 }),
    preferred: fc.uniqueArray(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 3 }),
    delay: fc.constantFrom(0, 5),
    now: fc.constantFrom(0, 3, 5, 9),
  });

  function queueOf(rows: readonly number[]): QueuedRequestView {
    const requests = rows.map((count) => queuedRequest(count));
    return { head: requests[0], after: (request) => requests[requests.indexOf(request) + 1] };
  }

  describe("formBatch with random queues", () => {
    it("never exceeds the largest size, and always returns a batch or a time to try again", () => {
      fc.assert(
        fc.property(scenario, ({ rows, base, preferred, delay, now }) => {
          const rules: BatchingRules = {
            maxBatchSize: 8,
            preferredBatchSizes: preferred.sort((a, b) => a - b),
            maxQueueDelayMs: delay,
            equalInputs: new EqualInputsRule(modelConfig()),
          };
          const decision = formBatch(
            queueOf(rows),
            { batchSize: base, cost: 0, requiredEqual: undefined },
            now,
            rules,
          );
          const taken = rows.slice(0, decision.take).reduce((sum, count) => sum + count, 0);
          if (decision.take > 0) expect(base + taken).toBeLessThanOrEqual(8);
          if (decision.take === 0) expect(decision.closePayload || decision.waitMs !== undefined).toBe(true);
          if (decision.waitMs !== undefined) {
            expect(decision.waitMs).toBeGreaterThan(0);
            expect(decision.waitMs).toBeLessThanOrEqual(delay);
          }
        }),
        { numRuns: 500 },
      );
    });

    it("returns a batch for a fresh payload once the delay is over", () => {
      fc.assert(
        fc.property(scenario, ({ rows, preferred, delay }) => {
          const rules: BatchingRules = {
            maxBatchSize: 8,
            preferredBatchSizes: preferred.sort((a, b) => a - b),
            maxQueueDelayMs: delay,
            equalInputs: new EqualInputsRule(modelConfig()),
          };
          const decision = formBatch(
            queueOf(rows),
            { batchSize: 0, cost: 0, requiredEqual: undefined },
            delay,
            rules,
          );
          expect(decision.take).toBeGreaterThan(0);
        }),
      );
    });
  });
});
