import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { type ModelConfig, type TensorSpec, Triton } from "@tritonjs/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseConfigText } from "../../../../test/golden/support/config-text.js";
import { loadLines } from "../../../../test/golden/support/load-cases.js";
import type { Scenario } from "../../../../test/golden/support/scheduler/scenario.js";
import { thrownBy } from "../../../../test/support/outcome.js";

const x = { name: "x", dtype: "FP32", shape: [-1], allowRaggedBatch: true } as const;
const y = { name: "y", dtype: "FP32", shape: [1] } as const;

let triton: Triton;
beforeEach(() => {
  triton = new Triton({ delayScheduler: 3 });
});
afterEach(() => triton.close());

describe.each(
  loadLines<Scenario & { readonly files: Record<string, string> }>("scheduler/scenarios.jsonl")
    .filter(({ id }) => /^rg_(count|item_shape|scatter|max4)$/.test(id))
    .map((scenario) => [scenario.id, scenario] as const),
)("an ONNX model with ragged inputs, %s", (_, scenario) => {
  it("answers as it does in Triton", async () => {
    const modelConfig = parseConfigText(scenario.config_pbtxt, scenario.id) as Partial<ModelConfig>;
    const requests = scenario.actions as unknown as { in: { X: { shape: number[]; data: number[] } } }[];
    const server = new Triton({ delayScheduler: requests.length });
    const handle = server.bind({
      modelName: scenario.id,
      inferFunc: onnxruntime({ model: Buffer.from(scenario.files["1/model.onnx"]!, "hex") }),
      modelConfig,
    });
    await handle.ready();
    const answers = await Promise.all(
      requests.map(({ in: { X } }) => server.infer(scenario.id, { X: [X.data] })),
    );
    const expected = scenario.outcome.responses as unknown as {
      outputs: Record<string, { shape: number[]; data: number[] }>;
    }[];
    const outputs = answers.map((answer) =>
      Object.fromEntries(
        Object.entries(answer).map(([name, { shape, data }]) => [
          name,
          { datatype: "FP32", shape, data: [...(data as Float32Array)] },
        ]),
      ),
    );
    expect(outputs).toMatchObject(expected.map((response) => response.outputs));
    expect(handle.statistics()).toMatchObject({
      inferenceCount: requests.length,
      executionCount: (scenario.outcome.statistics as { execution_count: number }).execution_count,
    });
    await server.close();
  });
});

describe("a model file with a ragged input", () => {
  const scenario = loadLines<Scenario & { readonly files: Record<string, string> }>(
    "scheduler/scenarios.jsonl",
  ).find(({ id }) => id === "rg_count")!;
  const inferFunc = onnxruntime({ model: Buffer.from(scenario.files["1/model.onnx"]!, "hex") });
  const C: TensorSpec = {
    name: "C",
    dtype: "FP32",
    shape: [1],
    batchInput: { kind: "BATCH_ELEMENT_COUNT", sourceInput: "X" },
  };

  it("can be described by typed options", async () => {
    const handle = triton.bind({
      modelName: "count",
      inferFunc,
      inputs: [{ ...x, name: "X" }, C],
      outputs: [{ ...y, name: "OUT" }],
    });
    await handle.ready();
    const answers = await Promise.all(
      [[1, 2], [3, 4, 5], [6]].map((values) => handle.inferSample({ X: values })),
    );
    expect(answers.map(({ OUT }) => OUT?.data[0])).toEqual([2, 3, 1]);
  });

  it("is rejected when file and configuration do not match", () => {
    const text = thrownBy(() =>
      triton.bind({
        modelName: "count",
        inferFunc,
        inputs: [
          { ...x, name: "X", optional: true },
          { ...C, name: "D" },
        ],
        outputs: [{ ...y, name: "OUT" }],
      }),
    );
    expect(text).toContain(
      "configuration expects model provides input with shape [-1] for ragged input 'X', which is not supported for optional input",
    );
    expect(text).toContain("input 'D' is not in the model file: expected one of 'X', 'C'");
    expect(text).toContain("input 'C' of the model file is missing: add it to inputs");
  });
});
