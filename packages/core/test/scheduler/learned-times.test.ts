import { describe, expect, it } from "vitest";
import { SeededRandom } from "../../../../test/support/seeded-random.js";
import { Payload } from "../../src/batch/payload.js";
import { planInstances } from "../../src/config/instance-groups.js";
import { InstanceGroup } from "../../src/instance/instance-group.js";
import { ModelInstance } from "../../src/instance/model-instance.js";
import { ModelStatistics } from "../../src/observe/statistics.js";
import { InstanceTimes, LearnedTimes } from "../../src/scheduler/learned-times.js";
import { VirtualClock } from "../../src/system/clock.js";
import { instanceOwner } from "../support/instance-owner.js";
import { modelConfig } from "../support/model-config.js";
import { queuedRequest } from "../support/requests.js";

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
