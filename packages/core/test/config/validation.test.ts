import type { ModelConfig, TensorSpec } from "@tritonjs/protocol";
import { toConfigJson } from "@tritonjs/protocol/config";
import { describe, expect, it } from "vitest";
import { checkMembers } from "../../src/config/ensemble.js";
import type { ModelOptions } from "../../src/config/model-options.js";
import { validateConfig, validateOptions } from "../../src/config/resolve-config.js";
import { ensembleConfig, step } from "../support/ensemble-config.js";
import { modelConfig } from "../support/model-config.js";

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

describe("validating an ensemble", () => {
  it("accepts a graph in which every tensor is written and read", () => {
    expect(validateConfig(ensembleConfig(["x"], ["y"], [step("b", "m", "y"), step("a", "x", "m")]))).toEqual(
      [],
    );
  });

  it("reports all problems of the graph at once", () => {
    const steps = [
      { modelName: "", inputMap: {}, outputMap: {} },
      step("a", "nowhere", "y"),
      step("b", "x", "waste"),
      step("c", "x", "y"),
    ];
    expect(validateConfig(ensembleConfig(["x", "unread"], ["y", "unwritten"], steps))).toEqual([
      "must specify 'model_name' in step 0 of ensemble 'e'",
      "must specify 'input_map' in step 0 of ensemble 'e'",
      "must specify 'output_map' in step 0 of ensemble 'e'",
      "ensemble tensor 'y' can appear in an output map only once for ensemble 'e' step 3",
      "ensemble input 'unread' for ensemble e' is not used",
      "output 'y' for ensemble 'e' is not written: at least one of its depending tensors, 'nowhere', is not connected",
      "ensemble output 'unwritten' for ensemble e' is not used",
      "ensemble tensor 'waste' is unused in ensemble 'e'",
    ]);
  });

  it("finds steps that wait for each other", () => {
    const steps = [step("a", "p", "q"), step("b", "q", "p"), step("c", "x", "y")];
    expect(validateConfig(ensembleConfig(["x"], ["y"], steps))).toEqual([
      "ensemble tensor 'q' is unused in ensemble 'e'",
      "ensemble tensor 'p' is unused in ensemble 'e'",
    ]);
  });

  it("rejects a step that writes an input", () => {
    const steps = [step("a", "x", "x"), step("b", "x", "y")];
    expect(validateConfig(ensembleConfig(["x"], ["y"], steps))).toEqual([
      "ensemble input 'x' cannot be in an output map of ensemble 'e'",
    ]);
  });

  it("rejects instances, optimization, warm-up, and a backend", () => {
    const { optimization, instanceGroup } = modelConfig();
    const modelWarmup = [{ name: "w", batchSize: 1, count: 1, inputs: {} }];
    const overrides = { optimization, instanceGroup, modelWarmup, backend: "identity" };
    expect(validateConfig(ensembleConfig(["x"], ["y"], [step("a", "x", "y")], {}, overrides))).toEqual([
      "Ensemble model 'e' must have platform type 'ensemble' and empty backend type",
      "instance group should not be specified for ensemble 'e'",
      "optimization should not be specified for ensemble 'e'",
      "model_warmup can not be specified for ensemble 'e'",
    ]);
    expect(validateConfig(ensembleConfig(["x"], ["y"], []))).toContain(
      "must specify 'step' for ensemble 'e'",
    );
    expect(validateConfig({ ...modelConfig(), platform: "ensemble" })).toEqual([
      "ensemble scheduling must be set for ensemble m whose platform is ensemble",
    ]);
  });

  it("shows the limit of in-flight requests only when it is set", () => {
    const json = (maxInflightRequests: number) =>
      toConfigJson(ensembleConfig(["x"], ["y"], [step("a", "x", "y")], { maxInflightRequests }));
    const shown = {
      step: [
        {
          model_name: "a",
          model_version: -1,
          input_map: { x: "x" },
          output_map: { y: "y" },
          model_namespace: "",
        },
      ],
    };
    expect(json(0).ensemble_scheduling).toEqual(shown);
    expect(json(4).ensemble_scheduling).toEqual({ ...shown, max_inflight_requests: 4 });
  });
});

describe("checking an ensemble against its members", () => {
  const scalar = { dtype: "FP32", shape: [1] } as const;
  const member = (name: string, overrides: Partial<ModelConfig> = {}): ModelConfig => ({
    ...modelConfig({ inputs: [{ name: "x", ...scalar }], outputs: [{ name: "y", ...scalar }] }),
    name,
    ...overrides,
  });
  const check = (ensemble: ModelConfig, ...members: ModelConfig[]) =>
    checkMembers(ensemble, ({ modelName }) => members.find(({ name }) => name === modelName));

  it("accepts equal names, types and shapes", () => {
    const ensemble = ensembleConfig(["x"], ["y"], [step("a", "x", "m"), step("b", "m", "y")]);
    expect(check(ensemble, member("a"), member("b"))).toEqual({ problems: [], decoupled: false });
  });

  it("reports every mismatch at once", () => {
    const ensemble = ensembleConfig(
      ["x"],
      ["y"],
      [
        { modelName: "a", inputMap: { none: "x" }, outputMap: { y: "m", z: "n" } },
        { modelName: "b", inputMap: { x: "m" }, outputMap: { y: "y" } },
      ],
    );
    const wide = member("b", {
      maxBatchSize: 2,
      input: [{ ...member("b").input[0]!, dataType: "TYPE_INT32" }],
      output: [{ ...member("b").output[0]!, dims: [7] }],
    });
    expect(check(ensemble, member("a"), wide).problems).toEqual([
      "in ensemble e, ensemble tensor x is mapping to non-existing input none in model a",
      "in ensemble e, input x in model a is not mapped to any ensemble tensors",
      "in ensemble e, ensemble tensor n is mapped from non-existing output z in model a",
      "ensemble e allows maximum batch size 4, but it contains model b which only allows maximum batch size to be 2",
      "in ensemble e, ensemble tensor m: inconsistent data type: TYPE_FP32 is inferred from model a while " +
        "TYPE_INT32 is inferred from model b",
      "in ensemble e, ensemble tensor y: inconsistent shape: [-1,1] is inferred from model e while [-1,7] is " +
        "inferred from model b",
    ]);
  });

  it("accepts unmapped optional inputs of a member", () => {
    const optional = member("a", {
      input: [...member("a").input, { ...member("a").input[0]!, name: "z", optional: true }],
    });
    expect(check(ensembleConfig(["x"], ["y"], [step("a", "x", "y")]), optional).problems).toEqual([]);
  });

  it("makes the ensemble decoupled with any member, and rejects joins of different decoupled responses", () => {
    const decoupled = { modelTransactionPolicy: { decoupled: true } };
    const chain = ensembleConfig(["x"], ["y"], [step("a", "x", "m"), step("b", "m", "y")]);
    expect(check(chain, member("a", decoupled), member("b"))).toEqual({ problems: [], decoupled: true });
    const join = ensembleConfig(
      ["x"],
      ["y"],
      [step("a", "x", "m"), { modelName: "c", inputMap: { x: "m", z: "x" }, outputMap: { y: "y" } }],
    );
    const two = member("c", { input: [...member("c").input, { ...member("c").input[0]!, name: "z" }] });
    expect(check(join, member("a", decoupled), two).problems).toEqual([
      "in ensemble e, step of model 'e' receives inputs originated from different decoupled models",
    ]);
  });
});
