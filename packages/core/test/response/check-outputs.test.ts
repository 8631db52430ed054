import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import type { TensorSpec } from "../../src/config/tensor-spec.js";
import { OutputChecker } from "../../src/response/check-outputs.js";
import { Tensor } from "../../src/tensor/tensor.js";
import { modelConfig } from "../support/model-config.js";
import { thrownText } from "../support/requests.js";
import { fp32, ones } from "../support/tensors.js";

const outputs: readonly TensorSpec[] = [
  { name: "y", dtype: "FP32", shape: [3] },
  { name: "label", dtype: "BYTES", shape: [-1] },
];
const checker = new OutputChecker(modelConfig({ outputs }));
const single = new OutputChecker(modelConfig());
const good = { y: [[1, 2, 3]], label: [["a"]] };

const fault = (value: unknown, rows = 1, requested: readonly string[] = []) =>
  thrownText(() => checker.fromCallback(value, rows, requested)).replace("INTERNAL model 'm' ", "");
const tensorFault = (tensors: Record<string, Tensor>, rows = 1) =>
  thrownText(() => single.check(new Map(Object.entries(tensors)), rows, [])).replace(
    "INTERNAL model 'm' ",
    "",
  );

describe("what a callback returns", () => {
  it("becomes tensors in the model's order", () => {
    const made = checker.fromCallback({ label: good.label, y: good.y }, 1, []);
    expect([...made.keys()]).toEqual(["y", "label"]);
    expect(made.get("y")!.elements).toEqual(Float32Array.of(1, 2, 3));
  });

  it("may be typed arrays, which take the declared shape with the rows of the batch", () => {
    expect(single.fromCallback({ y: new Float32Array(6) }, 2, []).get("y")!.shape).toEqual([2, 3]);
  });

  it("is as it is, without a batch axis, when the model has none", () => {
    const whole = new OutputChecker(modelConfig({ options: { batching: false } }));
    expect(whole.fromCallback({ y: [1, 2, 3] }, 1, []).get("y")!.shape).toEqual([3]);
  });

  it("may leave out outputs that nobody asked for", () => {
    expect([...checker.fromCallback({ y: good.y }, 1, ["y"]).keys()]).toEqual(["y"]);
  });
});

describe("a wrong result says what was declared and what came", () => {
  it("when it is no object", () => {
    const expected = "returned a wrong value: expected an object with its outputs by name, got";
    expect([undefined, null, 3, [good], "y"].map((value) => fault(value))).toEqual([
      `${expected} undefined`,
      `${expected} null`,
      `${expected} number`,
      `${expected} an array`,
      `${expected} string`,
    ]);
  });

  it("with an output of an unknown name", () => {
    expect(fault({ ...good, z: [[1]] })).toBe("returned an unknown output 'z': expected ['y', 'label']");
  });

  it("with an output missing", () => {
    expect(fault({ y: good.y })).toBe("did not return output 'label': got ['y']");
    expect(fault({ y: good.y }, 1, ["label"])).toBe("did not return output 'label': got ['y']");
  });

  it("with elements of another type", () => {
    expect(fault({ ...good, y: new Float64Array(3) })).toBe(
      "returned a wrong output 'y' (FP32): expected Float32Array, got Float64Array",
    );
    expect(fault({ ...good, y: [["1", 2, 3]] })).toBe(
      "returned a wrong output 'y' (FP32): expected a number, got string",
    );
    expect(fault({ ...good, label: [[1]] })).toContain(
      "output 'label' (BYTES): expected a string or a Uint8Array, got 1",
    );
  });

  it("with an array that does not fill the shape", () => {
    expect(fault({ ...good, y: new Float32Array(5) }, 2)).toBe(
      "returned a wrong output 'y': expected elements for shape [2,3], got an array of 5",
    );
  });

  it("of another rank", () => {
    expect(fault({ ...good, y: [1, 2, 3] })).toBe(
      "returned a wrong output 'y': expected shape [-1,3], got [3]",
    );
  });

  it("with another fixed dimension", () => {
    expect(fault({ ...good, y: [[1, 2]] })).toBe(
      "returned a wrong output 'y': expected shape [-1,3], got [1,2]",
    );
  });

  it("with another number of rows than the batch", () => {
    expect(fault({ ...good, y: ndarray(new Float32Array(9), [3, 3]) }, 2)).toBe(
      "INTERNAL Received output tensors with different batch sizes: y: (3, 3), label: (1, 1). Expected batch size: 2. ",
    );
  });

  it("as INTERNAL, with the cause kept", () => {
    expect(() => checker.fromCallback({ ...good, y: "no" }, 1, [])).toThrow(
      expect.objectContaining({ code: "INTERNAL", cause: expect.objectContaining({ code: "INVALID_ARG" }) }),
    );
  });
});

describe("tensors of a backend", () => {
  it("pass when they are what was declared", () => {
    expect(tensorFault({ y: ones(2, 3) }, 2)).toBe("nothing was thrown");
  });

  it("are refused by the same rules", () => {
    expect(tensorFault({ y: Tensor.fromBytes("FP64", [1, 3], new Uint8Array(24)) })).toBe(
      "returned a wrong output 'y': expected FP32, got FP64",
    );
    expect(tensorFault({ y: ones(1, 3), z: ones(1) })).toBe("returned an unknown output 'z': expected ['y']");
    expect(tensorFault({ y: fp32([1, 3], [1, 2]) })).toBe(
      "returned a wrong output 'y': expected 3 elements for shape [1,3], got 2",
    );
    expect(tensorFault({ y: ones(1, 3) }, 2)).toBe(
      "INTERNAL Received output tensors with different batch sizes: y: (1, 3). Expected batch size: 2. ",
    );
    expect(tensorFault({})).toBe("did not return output 'y': got []");
  });
});
