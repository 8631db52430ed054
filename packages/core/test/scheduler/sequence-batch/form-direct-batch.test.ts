import { describe, expect, it } from "vitest";
import { EqualInputsRule } from "../../../src/batch/payload.js";
import { type DirectRules, formDirectBatch } from "../../../src/scheduler/direct-batcher.js";
import { modelConfig } from "../../support/model-config.js";
import { queuedRequest } from "../../support/requests.js";

const variable = modelConfig({ inputs: [{ name: "x", dtype: "FP32", shape: [-1] }] });

function rules(given: Partial<DirectRules> = {}): DirectRules {
  const equalInputs = new EqualInputsRule(modelConfig());
  return { maxQueueDelayMs: 0, minimumSlotUtilization: 0, equalInputs, ...given };
}

const at = (queueStart: number) => queuedRequest(1, queueStart);

describe("the rows of a direct batch", () => {
  it("are the slots up to the highest one with a request", () => {
    const heads = [undefined, at(0), undefined, at(0), undefined];
    expect(formDirectBatch(heads, 0, rules())).toEqual({ rows: [false, true, false, true] });
  });

  it("are empty when there is no request", () => {
    expect(formDirectBatch([undefined, undefined], 0, rules())).toEqual({ rows: [] });
  });

  it("exclude a request whose shape differs from the first one", () => {
    const heads = [undefined, queuedRequest(1, 0, 2), queuedRequest(1, 0, 3), queuedRequest(1, 0, 2)];
    const equalInputs = new EqualInputsRule(variable);
    expect(formDirectBatch(heads, 0, rules({ equalInputs })).rows).toEqual([false, true, false, true]);
  });

  it("extend to an excluded request", () => {
    const heads = [queuedRequest(1, 0, 2), queuedRequest(1, 0, 3)];
    const equalInputs = new EqualInputsRule(variable);
    expect(formDirectBatch(heads, 0, rules({ equalInputs })).rows).toEqual([true, false]);
  });
});

describe("minimum slot utilization", () => {
  const waiting = rules({ maxQueueDelayMs: 100, minimumSlotUtilization: 0.5 });

  it("keeps too few requests waiting for the rest of the oldest one's delay", () => {
    const heads = [at(30), undefined, undefined, undefined];
    expect(formDirectBatch(heads, 70, waiting)).toEqual({ rows: [], waitMs: 60 });
  });

  it("is reached by enough requests", () => {
    expect(formDirectBatch([at(30), undefined, at(60), undefined], 70, waiting).rows).toEqual([
      true,
      false,
      true,
    ]);
  });

  it("no longer matters when the delay of the oldest request is over", () => {
    expect(formDirectBatch([at(30), undefined, undefined], 130, waiting).rows).toEqual([true]);
  });

  it("lets no request wait when it is 0, whatever the delay", () => {
    const eager = rules({ maxQueueDelayMs: 100 });
    expect(formDirectBatch([at(0), undefined], 0, eager).rows).toEqual([true]);
  });
});
