import { describe, expect, it } from "vitest";
import { inputTensor } from "../../src/tensor-from-value.js";

describe("a list of typed arrays without a description", () => {
  it("has two dimensions and the data type of the arrays", () => {
    const made = inputTensor("x", [Float32Array.of(1, 2), Float32Array.of(3, 4)]);
    expect([made.datatype, made.shape]).toEqual(["FP32", [2, 2]]);
    expect(made.elements).toEqual(Float32Array.of(1, 2, 3, 4));
  });

  it("takes the shape of the description", () => {
    const made = inputTensor("x", { shape: [2, 1, 2], data: [Int32Array.of(1, 2), Int32Array.of(3, 4)] });
    expect([made.datatype, made.shape]).toEqual(["INT32", [2, 1, 2]]);
  });

  it("holds elements of BYTES when they are byte arrays, unless the data type says otherwise", () => {
    const rows = [Uint8Array.of(1, 2), Uint8Array.of(3, 4)];
    expect(inputTensor("x", rows)).toMatchObject({ datatype: "BYTES", shape: [2] });
    expect(inputTensor("x", { datatype: "UINT8", data: rows })).toMatchObject({ shape: [2, 2] });
  });
});
