import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type OnnxElementType, onnxModel } from "../../../../examples/onnx-writer/onnx-writer.js";
import { thrownText } from "../../../core/test/support/requests.js";
import { describeOnnxModel } from "../../src/onnxruntime/describe-onnx-model.js";

const identity = (elemType: OnnxElementType, dims: readonly (number | string)[]) =>
  onnxModel({
    name: "identity",
    opset: 17,
    inputs: [{ name: "x", elemType, dims }],
    outputs: [{ name: "y", elemType, dims }],
    nodes: [{ op: "Identity", inputs: ["x"], outputs: ["y"] }],
  });

describe("describing an ONNX file", () => {
  it("reads inputs and outputs, with -1 for dimensions known only at run time", () => {
    expect(describeOnnxModel(identity("FLOAT", ["batch", 4]))).toEqual({
      inputs: [{ name: "x", dtype: "FP32", shape: [-1, 4] }],
      optionalInputs: [],
      outputs: [{ name: "y", dtype: "FP32", shape: [-1, 4] }],
    });
    expect(describeOnnxModel(identity("INT64", [])).inputs[0]!.shape).toEqual([]);
  });

  it("accepts -1 as a variable dimension", () => {
    expect(describeOnnxModel(identity("FLOAT", [-1, 4])).inputs[0]!.shape).toEqual([-1, 4]);
  });

  it("describes weights among the inputs as optional inputs", () => {
    const model = onnxModel({
      name: "add",
      opset: 17,
      inputs: [
        { name: "x", elemType: "FLOAT", dims: ["n"] },
        { name: "w", elemType: "FLOAT", dims: [1] },
      ],
      outputs: [{ name: "y", elemType: "FLOAT", dims: ["n"] }],
      nodes: [{ op: "Add", inputs: ["x", "w"], outputs: ["y"] }],
      initializers: [{ name: "w", dims: [1], data: Float32Array.of(1) }],
    });
    const { inputs, optionalInputs } = describeOnnxModel(model);
    expect(inputs.map(({ name }) => name)).toEqual(["x"]);
    expect(optionalInputs).toEqual([{ name: "w", dtype: "FP32", shape: [1] }]);
  });

  it("rejects bfloat16 inputs and outputs, and says what to do", () => {
    expect(thrownText(() => describeOnnxModel(identity("BFLOAT16", ["n"])))).toBe(
      "UNSUPPORTED cannot serve the ONNX model given as bytes: it has input 'x' of type bfloat16, which onnxruntime-node cannot pass; " +
        "cast it to float32 or float16 inside the model, or use the engine 'native'",
    );
  });

  it("rejects a file that is cut short at any byte", () => {
    const bytes = identity("FLOAT", ["batch", 4]);
    for (let length = 0; length < bytes.byteLength; length++) {
      const thrown = thrownText(() => describeOnnxModel(bytes.subarray(0, length)));
      if (!thrown.startsWith("nothing")) {
        expect(thrown).toMatch(/^INVALID_ARG cannot read the ONNX model given as bytes: /);
      }
    }
    expect(thrownText(() => describeOnnxModel(bytes.subarray(0, 20)))).toMatch(
      /^INVALID_ARG cannot read the ONNX model given as bytes: /,
    );
  });

  it("returns a description or a typed error for any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(thrownText(() => describeOnnxModel(bytes))).toMatch(/^(nothing|INVALID_ARG|UNSUPPORTED) /);
      }),
      { numRuns: 500 },
    );
  });

  it("returns a description or a typed error when any one byte is changed", () => {
    const good = identity("FLOAT", ["batch", 4]);
    const changes = fc.tuple(fc.nat({ max: good.byteLength - 1 }), fc.nat({ max: 255 }));
    fc.assert(
      fc.property(changes, ([at, value]) => {
        const bytes = Uint8Array.from(good);
        bytes[at] = value;
        expect(thrownText(() => describeOnnxModel(bytes))).toMatch(/^(nothing|INVALID_ARG|UNSUPPORTED) /);
      }),
      { numRuns: 500 },
    );
  });

  it("fails with NOT_FOUND for a missing file", () => {
    expect(thrownText(() => describeOnnxModel("/nowhere/model.onnx"))).toMatch(
      /^NOT_FOUND cannot open the ONNX model '\/nowhere\/model.onnx': there is no file '\/nowhere\/model.onnx'/,
    );
  });
});
