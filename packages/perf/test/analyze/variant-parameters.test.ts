import { readPrototxt } from "@tritonjs/repository/config";
import { describe, expect, it } from "vitest";
import {
  candidatesOf,
  canonical,
  defaultSpace,
  parametersText,
  variantConfig,
  variantsOf,
} from "../../src/analyze/candidate.js";
import { simulateLoad } from "../../src/analyze/simulated-candidate.js";

const config = readPrototxt(`
  name: "m" backend: "onnxruntime" max_batch_size: 8
  dynamic_batching { preferred_batch_size: 8 }
  instance_group { kind: KIND_CPU count: 1 host_policy: "p" }
  parameters { key: "target_latency_ms" value { string_value: "20" } }`);

describe("the configuration of a variant", () => {
  it("has the parameters where a server reads them", () => {
    const changed = variantConfig(config, {
      instances: 3,
      isolation: "process",
      maxBatchSize: 16,
      queueDelayMicroseconds: 500,
      preferredBatchSizes: [4, 32],
      targetLatencyMs: 0,
      threads: 2,
    });
    expect(changed.maxBatchSize).toBe(16);
    expect(changed.instanceGroup).toEqual([expect.objectContaining({ count: 3, hostPolicy: "p" })]);
    expect(changed.dynamicBatching).toMatchObject({
      preferredBatchSize: [4],
      maxQueueDelayMicroseconds: 500,
    });
    expect(changed.parameters).toEqual({
      isolation: { stringValue: "process" },
      intra_op_thread_count: { stringValue: "2" },
    });
  });

  it("has no isolation for the default one of the backend", () => {
    const isolated = variantConfig(config, { isolation: "worker" });
    expect(isolated.parameters.isolation).toEqual({ stringValue: "worker" });
    expect(variantConfig(isolated, { isolation: "default" }).parameters.isolation).toBeUndefined();
    expect(parametersText({ instances: 1, isolation: "default" })).toBe("1 instance");
  });

  it("does not keep the preferred size that stands for another largest batch", () => {
    expect(variantConfig(config, { maxBatchSize: 16 }).dynamicBatching!.preferredBatchSize).toEqual([]);
    expect(variantConfig(config, { instances: 2 }).dynamicBatching!.preferredBatchSize).toEqual([8]);
  });

  it("has no batcher and no target for batches of 1", () => {
    const changed = variantConfig(config, { maxBatchSize: 1 });
    expect([changed.dynamicBatching, changed.parameters]).toEqual([undefined, {}]);
  });
});

describe("a variant with deadlines", () => {
  it("has them where a server reads them, and no target", () => {
    const parameters = canonical({ deadlineMs: 50, targetLatencyMs: 20 });
    expect(parameters).toEqual({ deadlineMs: 50, targetLatencyMs: 0 });
    const changed = variantConfig(config, parameters);
    expect(changed.parameters).toEqual({
      deadlines: { stringValue: "true" },
      deadline_default_ms: { stringValue: "50" },
    });
    expect(variantConfig(changed, { deadlineMs: 0 }).parameters).toEqual({});
    expect(parametersText(parameters)).toBe("deadlines 50 ms");
  });

  it("answers more requests within its limit in overload than without, by the simulation", async () => {
    const level = { mode: "request_rate", value: 1100, distribution: "poisson" } as const;
    const runs = [0, 60].map((deadlineMs) =>
      simulateLoad({
        config: variantConfig(config, { deadlineMs, targetLatencyMs: 0, instances: 1 }),
        level,
        rows: 1,
        duration: (rows) => 5 + rows,
        signal: new AbortController().signal,
      }),
    );
    const [without, withThem] = await Promise.all(runs);
    expect(without!.figures.perf_latency_p99).toBeGreaterThan(200);
    expect(withThem!.figures.perf_latency_p99).toBeLessThanOrEqual(60);
    expect(withThem!.figures.perf_throughput).toBeGreaterThan(500);
  });
});

describe("the search space", () => {
  it("has each behaviour once", () => {
    const variants = variantsOf({
      maxBatchSize: [1, 4],
      queueDelayMicroseconds: [0, 500],
      targetLatencyMs: [0, 50],
    });
    // A batch of 1 waits for nothing, and a target replaces the delay.
    expect(variants.map(parametersText)).toEqual([
      "batch 1",
      "batch 4",
      "batch 4, target 50 ms",
      "batch 4, delay 500 µs",
    ]);
    expect(candidatesOf({ a: { instances: [1, 2] }, b: { instances: [1, 2, 3] } })).toHaveLength(6);
  });

  it("takes a preferred size that is the largest batch for none", () => {
    const preferredBatchSizes = [[], [8], [4, 8], [4, 8, 16]];
    expect(variantsOf({ maxBatchSize: [8], preferredBatchSizes }).map(parametersText)).toEqual([
      "batch 8",
      "batch 8, prefers 4+8",
    ]);
  });

  const bounds = { maxInstances: 2, maxBatchSize: 8, cores: 4, isSimulated: false };

  it("has adaptive batching only with a limit on the latency, and threads only for ONNX Runtime", () => {
    expect(defaultSpace(config, bounds)).toEqual({
      instances: [1, 2],
      maxBatchSize: [1, 2, 4, 8],
      queueDelayMicroseconds: [0, 500, 2000],
      threads: [0, 1],
    });
    const python = readPrototxt('name: "m" backend: "python" max_batch_size: 0');
    expect(defaultSpace(python, { ...bounds, latencyBudgetMs: 50 })).toEqual({ instances: [1, 2] });
    expect(defaultSpace(config, { ...bounds, latencyBudgetMs: 50 }).targetLatencyMs).toEqual([0, 50]);
  });

  describe("of a search with a simulation", () => {
    const simulated = { ...bounds, maxBatchSize: 32, isSimulated: true };
    const model = (text: string) => readPrototxt(`name: "m" ${text}`);

    it("has preferred sizes for models with a dynamic batcher", () => {
      const sizes = (text: string) => defaultSpace(model(text), simulated).preferredBatchSizes;
      expect(sizes('backend: "x" max_batch_size: 8')).toEqual([[], [4, 8, 16, 32], [16, 32]]);
      expect(sizes('backend: "x" max_batch_size: 0')).toBeUndefined();
      expect(sizes('backend: "x" max_batch_size: 8 sequence_batching { }')).toBeUndefined();
    });

    it.each([
      ["ONNX models", 'platform: "onnxruntime_onnx"', ["default", "process"]],
      ["JavaScript models", 'backend: "javascript"', ["default", "process"]],
      ["TensorFlow models", 'backend: "tensorflow"', ["default", "process"]],
      ["Python models, which are always processes", 'backend: "python"', undefined],
      [
        "models whose isolation is configured",
        'backend: "javascript" parameters { key: "isolation" value { string_value: "process" } }',
        undefined,
      ],
    ])("has the isolations of %s", (_, text, isolation) => {
      expect(defaultSpace(model(text), simulated).isolation).toEqual(isolation);
    });

    it("leaves out what the machine cannot vary", () => {
      const space = defaultSpace(config, { ...simulated, fixed: ["isolation", "threads"] });
      expect(Object.keys(space)).toEqual([
        "instances",
        "maxBatchSize",
        "queueDelayMicroseconds",
        "preferredBatchSizes",
      ]);
    });
  });
});
