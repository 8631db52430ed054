import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EqualInputsRule } from "../../../src/batch/payload.js";
import { type BatchingRules, formBatch } from "../../../src/scheduler/form-batch.js";
import type { QueuedRequestView } from "../../../src/scheduler/priority-queue.js";
import { modelConfig } from "../../support/model-config.js";
import { queuedRequest } from "../../support/requests.js";

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
