import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import type { ModelOptions } from "../../../src/config/model-options.js";
import { validateConfig, validateOptions } from "../../../src/config/resolve-config.js";
import { modelConfig } from "../../support/model-config.js";

const input = (spec: Partial<TensorSpec>) =>
  validateConfig(modelConfig({ inputs: [{ name: "x", dtype: "FP32", shape: [2], ...spec }] }));
const options = (given: ModelOptions) => validateConfig(modelConfig({ options: given }));

describe("validating a configuration", () => {
  it("accepts the defaults", () => {
    expect(validateConfig(modelConfig())).toEqual([]);
  });

  it("requires an output", () => {
    expect(validateConfig(modelConfig({ outputs: [] }))).toEqual(["model 'm' must have at least one output"]);
  });

  it("accepts a model without inputs", () => {
    expect(validateConfig(modelConfig({ inputs: [], options: { batching: false } }))).toEqual([]);
  });

  it("requires a unique name for each tensor", () => {
    expect(input({ name: "" })).toEqual(["model input must specify 'name'"]);
    const twice: TensorSpec = { name: "y", dtype: "FP32", shape: [1] };
    expect(validateConfig(modelConfig({ outputs: [twice, twice] }))).toEqual([
      "model output 'y' is given more than once",
    ]);
  });

  it("requires a known data type for each tensor", () => {
    expect(input({ dtype: "FLOAT" as TensorSpec["dtype"] })).toEqual([
      "model input 'x': expected a known 'data_type', got 'TYPE_FLOAT'",
    ]);
  });

  it.each([0, -2, 1.5, Number.NaN])("rejects a dimension %s", (dim) => {
    expect(input({ shape: [dim] })).toEqual([
      `model input 'x' dimension must be integer >= 1, or -1 to indicate a variable-size dimension, got ${dim}`,
    ]);
  });

  it("rejects a tensor with more elements than can be counted", () => {
    expect(input({ shape: [2 ** 27, -1, 2 ** 27] })).toEqual([
      "model input 'x' has too many elements to count: [134217728,-1,134217728]",
    ]);
  });

  it.each([-1, 1.5, Number.NaN])("rejects a largest batch size of %s", (maxBatchSize) => {
    expect(options({ maxBatchSize, batcher: false })).toEqual([
      "'max_batch_size' must be non-negative value for m",
    ]);
  });

  it("requires preferred batch sizes from 1 to the largest", () => {
    expect(options({ maxBatchSize: 4, batcher: { preferredBatchSize: [0] } })).toEqual([
      "dynamic batching preferred size must be positive for m",
    ]);
    expect(options({ maxBatchSize: 4, batcher: { preferredBatchSize: [5] } })).toEqual([
      "dynamic batching preferred size must be <= max batch size for m",
    ]);
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("rejects a queue delay of %s", (delay) => {
    expect(options({ batcher: { maxQueueDelayMicroseconds: delay } })).toEqual([
      "dynamic batching max queue delay must be a number of microseconds >= 0 for m",
    ]);
  });

  it.each([-1, 1.5])("rejects an instance group of %s instances", (count) => {
    expect(options({ instanceGroup: { count } })).toEqual([
      `instance group m_0 of model m: expected a count of at least 1, got ${count}`,
    ]);
  });

  it("accepts GPUs only in groups that run on them", () => {
    expect(options({ instanceGroup: { kind: "KIND_CPU", gpus: [0] } })).toEqual([
      "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs",
    ]);
  });

  it("rejects preserve_ordering with priorities or delayed timeouts", () => {
    const defaultQueuePolicy = { timeoutAction: "DELAY", defaultTimeoutMicroseconds: 1 } as const;
    const levels = { priorityLevels: 2, defaultPriorityLevel: 3, priorityQueuePolicy: { 4: {} } };
    expect(options({ batcher: { preserveOrdering: true, defaultQueuePolicy, ...levels } })).toEqual([
      "default priority level must be in range [1, 2] for m",
      "priority queue policy must have priority level in range [1, 2] for m",
      "Only one priority level is allowed when 'preserve_ordering' is true for m",
      "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ]);
  });

  it("rejects a response cache for decoupled models", () => {
    const config = {
      ...modelConfig({ options: { responseCache: true } }),
      modelTransactionPolicy: { decoupled: true },
    };
    expect(validateConfig(config)).toEqual([
      "Response Cache does not currently support model m with 'decoupled' transaction policy. " +
        "Please disable the response cache.",
    ]);
  });

  it("reports all problems at once", () => {
    const config: ModelConfig = {
      ...modelConfig({ outputs: [], options: { batcher: { maxQueueDelayMicroseconds: -1 } } }),
      maxBatchSize: -1,
    };
    expect(validateConfig(config)).toHaveLength(4);
  });
});

describe("validating options", () => {
  it("rejects misspelt names, and proposes or lists known ones", () => {
    expect(validateOptions({ maxBatchsize: 3 } as ModelOptions)[0]).toBe(
      "config has an unknown option 'maxBatchsize': did you mean 'maxBatchSize'?",
    );
    expect(validateOptions({ batcher: { delay: 3 } } as ModelOptions)[0]).toContain(
      "config.batcher has an unknown",
    );
    expect(validateOptions({ instanceGroup: [{ n: 3 }] } as ModelOptions)[0]).toMatch(
      /^config.instanceGroup has an unknown option 'n': expected one of /,
    );
  });

  it("rejects contradicting options", () => {
    expect(validateOptions({ batching: false, maxBatchSize: 8, batcher: {} })).toEqual([
      "config.maxBatchSize is 8, but config.batching is false: leave one of them out",
      "config.batcher is given, but config.batching is false: leave one of them out",
    ]);
    expect(validateOptions({ batching: true, maxBatchSize: 0 })).toEqual([
      "config.maxBatchSize is 0, but config.batching is true: leave one of them out",
    ]);
  });

  it("accepts options that repeat the same value", () => {
    expect(validateOptions({ batching: false, maxBatchSize: 0, batcher: false })).toEqual([]);
    expect(validateOptions({ batching: true, maxBatchSize: 8 })).toEqual([]);
  });
});
