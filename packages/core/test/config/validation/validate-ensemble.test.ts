import type { ModelConfig } from "@tritonjs/protocol";
import { describe, expect, it } from "vitest";
import { toConfigJson } from "../../../src/config/config-json.js";
import { checkMembers } from "../../../src/config/ensemble.js";
import { validateConfig } from "../../../src/config/resolve-config.js";
import { ensembleConfig, step } from "../../support/ensemble-config.js";
import { modelConfig } from "../../support/model-config.js";

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
