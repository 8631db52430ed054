import { describe, expect, it } from "vitest";
import { ShapePrediction } from "../../../src/onnxruntime/native-values.js";
import { loadOrtApi } from "../../../src/onnxruntime/ort-c-api.js";

describe("ONNX Runtime's C interface", () => {
  it("is that of the installed onnxruntime-node, loaded once", () => {
    const api = loadOrtApi();
    expect(api.version).toMatch(/^1\.\d+\.\d+$/);
    expect(loadOrtApi()).toBe(api);
  });

  it("reports an error with ONNX Runtime's words", () => {
    const api = loadOrtApi();
    expect(() => api.read((to) => api.createTensorAsOrtValue(api.allocator, 0, 0, 99, to))).toThrow(
      /not supported|NotImplemented|invalid/i,
    );
  });
});

describe("the shape of an output", () => {
  const tensor = (name: string, ...sizes: (number | string)[]) => ({
    name,
    elementType: 1,
    dims: sizes.map((size) => (typeof size === "number" ? size : -1)),
    dimNames: sizes.map((size) => (typeof size === "string" ? size : "")),
  });
  const shapes = new ShapePrediction([tensor("ids", "batch", "length"), tensor("mask", "batch", -1)]);
  const given: Readonly<Record<string, readonly number[]>> = { ids: [3, 7], mask: [3, 9] };
  const predict = (...sizes: (number | string)[]) =>
    shapes.predict(tensor("y", ...sizes), (name) => given[name]);

  it("follows from fixed dimensions and from names that an input has too", () => {
    expect(predict("batch", "length", 50)).toEqual([3, 7, 50]);
    expect(predict(2, 2)).toEqual([2, 2]);
  });

  it("is unknown for other names, nameless dimensions and an unknown rank", () => {
    expect(predict("batch", "found")).toBeUndefined();
    expect(predict("batch", -1)).toBeUndefined();
    expect(predict()).toBeUndefined();
    expect(shapes.predict(tensor("y", "length"), () => undefined)).toBeUndefined();
  });
});
