import { DATA_TYPES } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { toConfigJson } from "../../../src/config/config-json.js";
import { modelMetadata } from "../../../src/config/model-metadata.js";
import { modelConfig } from "../../support/model-config.js";

describe("a resolved configuration", () => {
  it("batches by default: up to 4 rows, no delay, preferring the largest size", () => {
    const config = modelConfig();
    expect(config.maxBatchSize).toBe(4);
    expect(config.dynamicBatching).toEqual({
      preferredBatchSize: [4],
      maxQueueDelayMicroseconds: 0,
      preserveOrdering: false,
      priorityLevels: 0,
      defaultPriorityLevel: 0,
      priorityQueuePolicy: {},
    });
  });

  it("has no batch axis and no batcher when batching is off", () => {
    const config = modelConfig({ options: { batching: false } });
    expect([config.maxBatchSize, config.dynamicBatching]).toEqual([0, undefined]);
  });

  it("has a batch axis and no batcher when only the batcher is off", () => {
    const config = modelConfig({ options: { maxBatchSize: 16, batcher: false } });
    expect([config.maxBatchSize, config.dynamicBatching]).toEqual([16, undefined]);
  });

  it("takes over the batcher options", () => {
    const batcher = { maxQueueDelayMicroseconds: 500, preferredBatchSize: [4, 8], preserveOrdering: true };
    expect(modelConfig({ options: { maxBatchSize: 8, batcher } }).dynamicBatching).toMatchObject(batcher);
  });

  it("has a queue with priorities when a decoupled model without a batch axis is given batcher options", () => {
    const batcher = { priorityLevels: 2, defaultPriorityLevel: 1 };
    const { maxBatchSize, dynamicBatching } = modelConfig({
      batching: false,
      options: { batcher, decoupled: true },
    });
    expect(maxBatchSize).toBe(0);
    expect(dynamicBatching).toMatchObject({ ...batcher, preferredBatchSize: [] });
  });

  it("has tensors of every data type under Triton's names", () => {
    const inputs = DATA_TYPES.map((dtype) => ({ name: dtype, dtype, shape: [-1, 2] }));
    expect(modelConfig({ inputs }).input.map(({ dataType, dims }) => [dataType, dims])).toEqual(
      DATA_TYPES.map((dtype) => [dtype === "BYTES" ? "TYPE_STRING" : `TYPE_${dtype}`, [-1, 2]]),
    );
  });

  it("lets fields of Triton's own message override options", () => {
    const config = modelConfig({ overrides: { maxBatchSize: 32, metricTags: { team: "a" } } });
    expect([config.maxBatchSize, config.metricTags]).toEqual([32, { team: "a" }]);
  });

  it("shares no arrays with the options it was made from", () => {
    const shape = [2];
    const preferredBatchSize = [2];
    const config = modelConfig({
      inputs: [{ name: "x", dtype: "FP32", shape }],
      options: { batcher: { preferredBatchSize } },
    });
    shape[0] = 9;
    preferredBatchSize[0] = 9;
    expect([config.input[0]!.dims, config.dynamicBatching!.preferredBatchSize]).toEqual([[2], [2]]);
  });

  it("converts parameters to Triton's form", () => {
    expect(modelConfig({ options: { parameters: { a: "b" } } }).parameters).toEqual({
      a: { stringValue: "b" },
    });
  });
});

describe("the configuration as JSON", () => {
  it("has Triton's snake_case names and leaves out unset sub-messages", () => {
    const json = toConfigJson(modelConfig({ options: { maxBatchSize: 8 } }));
    expect(json).toMatchObject({
      name: "m",
      max_batch_size: 8,
      input: [
        { name: "x", data_type: "TYPE_FP32", format: "FORMAT_NONE", dims: [2], is_shape_tensor: false },
      ],
      dynamic_batching: { preferred_batch_size: [8], max_queue_delay_microseconds: 0 },
      version_policy: { latest: { num_versions: 1 } },
    });
    expect(json).not.toHaveProperty("model_transaction_policy");
  });

  it("keeps map keys unchanged", () => {
    const json = toConfigJson(modelConfig({ options: { parameters: { camelCase: "v" } } }));
    expect(json.parameters).toEqual({ camelCase: { string_value: "v" } });
  });
});

describe("the model metadata", () => {
  it("shows the batch axis as a leading -1 when the model batches", () => {
    expect(modelMetadata(modelConfig(), [1, 3])).toMatchObject({
      name: "m",
      versions: ["1", "3"],
      platform: "javascript",
      inputs: [{ name: "x", datatype: "FP32", shape: [-1, 2] }],
      outputs: [{ name: "y", datatype: "FP32", shape: [-1, 3] }],
    });
    expect(modelMetadata(modelConfig({ options: { batching: false } }), [1]).inputs[0]!.shape).toEqual([2]);
  });
});
