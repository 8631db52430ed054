import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { Triton, TritonError } from "@tritonjs/core";
import type { SequenceStateOption } from "@tritonjs/core/types";
import { afterEach, describe, expect, it } from "vitest";
import { onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";

let triton: Triton;
afterEach(() => triton.close());

const dims = ["batch", 1];
const adder = onnxModel({
  name: "adder",
  opset: 13,
  inputs: ["x", "past", "start"].map((name) => ({ name, elemType: "FLOAT", dims })),
  outputs: ["sum", "present"].map((name) => ({ name, elemType: "FLOAT", dims })),
  nodes: [
    { op: "Add", inputs: ["x", "past"], outputs: ["between"] },
    { op: "Add", inputs: ["between", "start"], outputs: ["present"] },
    { op: "Identity", inputs: ["present"], outputs: ["sum"] },
  ],
});

function bindAdder(state: SequenceStateOption) {
  triton = new Triton();
  return triton.bind({
    modelName: "adder",
    inferFunc: onnxruntime({ model: adder }),
    config: {
      sequence: {
        strategy: "direct",
        controls: { start: { name: "start", dtype: "FP32" } },
        states: [state],
      },
    },
  });
}

describe("implicit state", () => {
  it("stays between batcher and model for an ONNX model, as control inputs do", async () => {
    const handle = bindAdder({ input: "past", output: "present", dtype: "FP32", shape: [1], initial: [10] });
    expect(handle.metadata().inputs.map(({ name }) => name)).toEqual(["x"]);
    expect(handle.metadata().outputs.map(({ name }) => name)).toEqual(["sum"]);
    const add = async (x: number, sequenceId: number, flags = {}) =>
      (await handle.inferSample({ x: [x] }, { sequence: { id: sequenceId, ...flags } })).sum!.get(0);
    expect(await add(1, 1, { start: true })).toBe(12);
    expect(await add(1, 2, { start: true })).toBe(12);
    expect(await add(5, 1)).toBe(17);
    expect(await add(5, 1, { start: true })).toBe(16);
  });

  it("is reported at bind when the ONNX model lacks it, all at once", () => {
    const bind = () => bindAdder({ input: "before", output: "after", dtype: "FP32", shape: [1] });
    expect(bind).toThrow(TritonError);
    expect(bind).toThrow(
      "state input 'before' is not in the model file: expected one of 'x', 'past', 'start'",
    );
    expect(bind).toThrow("state output 'after' is not in the model file: expected one of 'sum', 'present'");
  });

  it("grows in a worker when it is text", async () => {
    triton = new Triton();
    const handle = triton.bind({
      modelName: "words",
      inputs: [{ name: "word", dtype: "BYTES", shape: [1] }],
      outputs: [{ name: "all", dtype: "BYTES", shape: [1] }],
      inferFunc: new URL("../../../core/test/behaviours/fixtures/remembers-words.mjs", import.meta.url),
      config: {
        sequence: {
          states: [{ input: "past", output: "present", dtype: "BYTES", shape: [-1], initial: ["a", "é"] }],
        },
      },
    });
    const say = async (word: string, options: object) => {
      const { all } = await handle.inferSample({ word: [word] }, { sequence: { id: "s", ...options } });
      return new TextDecoder().decode(all.data[0]);
    };
    expect(await say("b", { start: true })).toBe("aéb");
    expect(await say("c", {})).toBe("aébc");
    expect(await say("d", { end: true })).toBe("aébcd");
    expect(await say("e", { start: true })).toBe("aée");
  });
});
