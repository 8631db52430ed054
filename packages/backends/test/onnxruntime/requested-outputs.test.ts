import { type OnnxRuntimeOptions, onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton } from "@tritonjs/core";
import { afterAll, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";

const triton = new Triton();
afterAll(() => triton.close());

const value = (name: string) => ({ name, elemType: "FLOAT", dims: ["batch", 1] }) as const;

/** `twice` = x + x, `square` = x * x, and `total` and the state `present` = past + x. */
const model = onnxModel({
  name: "several",
  opset: 17,
  inputs: [value("x"), value("past")],
  outputs: [value("twice"), value("square"), value("total"), value("present")],
  nodes: [
    { op: "Add", inputs: ["x", "x"], outputs: ["twice"] },
    { op: "Mul", inputs: ["x", "x"], outputs: ["square"] },
    { op: "Add", inputs: ["past", "x"], outputs: ["present"] },
    { op: "Identity", inputs: ["present"], outputs: ["total"] },
  ],
});

const numbers = (outputs: Readonly<Record<string, { readonly data: unknown }>>) =>
  Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, [...(data as Float32Array)]]));

describe.each(["worker", "native"] as const)("a batch of the engine '%s'", (engine) => {
  const inferFunc = onnxruntime({ model, engine } as OnnxRuntimeOptions);

  it("has the outputs that its requests ask for, together", async () => {
    const handle = triton.bind({
      modelName: `several-${engine}`,
      inferFunc,
      config: {
        maxBatchSize: 3,
        batcher: { preferredBatchSize: [3], maxQueueDelayMicroseconds: 60_000_000 },
      },
    });
    const ask = (x: number, ...requestedOutputs: string[]) => {
      // The steps of ensembles and the protocols ask like this.
      const options = { priority: 0, requestedOutputs };
      return handle.infer({ x: [[x]], past: [[10]] }, options).then(numbers);
    };
    // Each line is a batch.
    const few = await Promise.all([ask(1, "twice"), ask(2, "square"), ask(3, "square", "twice")]);
    expect(few).toEqual([{ twice: [2] }, { square: [4] }, { twice: [6], square: [9] }]);
    const all = await Promise.all([ask(1, "twice"), ask(2), ask(3, "total")]);
    expect(all).toEqual([
      { twice: [2] },
      { twice: [4], square: [4], total: [12], present: [12] },
      { total: [13] },
    ]);
    const others = await Promise.all([ask(1, "total"), ask(2, "total"), ask(3, "total")]);
    expect(others).toEqual([{ total: [11] }, { total: [12] }, { total: [13] }]);
    expect(handle.statistics()).toMatchObject({ inferenceCount: 9, executionCount: 3 });
  });

  it("does not take outputs that no request asks for", async () => {
    // The file declares a shape for `wrong` that the values do not have, which only an output that is taken shows.
    const wrong = onnxModel({
      name: "wrong",
      opset: 17,
      inputs: [value("x")],
      outputs: [value("twice"), value("wrong")],
      nodes: [
        { op: "Add", inputs: ["x", "x"], outputs: ["twice"] },
        { op: "Concat", inputs: ["x", "x", "x"], outputs: ["three"], attributes: { axis: { int: 1 } } },
        { op: "Reshape", inputs: ["three", "shape"], outputs: ["wrong"] },
      ],
      initializers: [{ name: "shape", dims: [2], data: new BigInt64Array([-1n, 3n]) }],
    });
    const handle = triton.bind({
      modelName: `wrong-${engine}`,
      inferFunc: onnxruntime({ model: wrong, engine } as OnnxRuntimeOptions),
      config: { maxBatchSize: 8 },
    });
    const ask = (...requestedOutputs: string[]) => {
      const options = { priority: 0, requestedOutputs };
      return handle.infer({ x: [[2]] }, options);
    };
    expect(numbers(await ask("twice"))).toEqual({ twice: [4] });
    await expect(ask("twice", "wrong")).rejects.toThrow("expected shape [-1,1], got [1,3]");
    expect(numbers(await ask("twice"))).toEqual({ twice: [4] });
  });

  it("keeps the states of sequences that ask for other outputs", async () => {
    const states = [{ input: "past", output: "present", dtype: "FP32", shape: [1] }] as const;
    const handle = triton.bind({ modelName: `sum-${engine}`, inferFunc, config: { sequence: { states } } });
    const ask = (x: number, name: string, start = false) => {
      const options = { requestedOutputs: [name], sequence: { id: 1, start } };
      return handle.infer({ x: [[x]] }, options).then(numbers);
    };
    expect(await ask(1, "twice", true)).toEqual({ twice: [2] });
    expect(await ask(2, "square")).toEqual({ square: [4] });
    expect(await ask(3, "total")).toEqual({ total: [6] });
  });
});
