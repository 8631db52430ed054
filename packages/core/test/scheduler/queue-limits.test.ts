import type { ModelDynamicBatching } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { defaultQueuePolicy } from "../../src/config/defaults.js";
import { freePlacesOf } from "../../src/scheduler/priority-queue.js";

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
