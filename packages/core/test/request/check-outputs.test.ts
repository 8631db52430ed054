import { Tensor, type TensorSpec } from "@tritonjs/protocol";
import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { OutputChecker } from "../../src/request/inference-response.js";
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

describe("the result of a callback", () => {
  it("becomes tensors in the model's order", () => {
    const made = checker.fromCallback({ label: good.label, y: good.y }, 1, []);
    expect([...made.keys()]).toEqual(["y", "label"]);
    expect(made.get("y")!.elements).toEqual(Float32Array.of(1, 2, 3));
  });

  it("may hold typed arrays, which get the declared shape with the rows of the batch", () => {
    expect(single.fromCallback({ y: new Float32Array(6) }, 2, []).get("y")!.shape).toEqual([2, 3]);
  });

  it("keeps its shape when the model has no batch axis", () => {
    const whole = new OutputChecker(modelConfig({ options: { batching: false } }));
    expect(whole.fromCallback({ y: [1, 2, 3] }, 1, []).get("y")!.shape).toEqual([3]);
  });

  it("may omit outputs that were not requested", () => {
    expect([...checker.fromCallback({ y: good.y }, 1, ["y"]).keys()]).toEqual(["y"]);
  });
});

describe("a wrong result is reported with the declared and the returned value", () => {
  it("when it is not an object", () => {
    const expected = "returned a wrong value: expected an object with its outputs by name, got";
    expect([undefined, null, 3, "y"].map((value) => fault(value))).toEqual([
      `${expected} undefined`,
      `${expected} null`,
      `${expected} number`,
      `${expected} string`,
    ]);
  });

  it("when it is a list of another length", () => {
    expect(fault([[1]])).toContain("expected 2 ('y', 'label'), got 1");
  });

  it("when an output has an unknown name", () => {
    expect(fault({ ...good, z: [[1]] })).toBe("returned an unknown output 'z': expected ['y', 'label']");
  });

  it("when an output is missing", () => {
    expect(fault({ y: good.y })).toBe("did not return output 'label': got ['y']");
    expect(fault({ y: good.y }, 1, ["label"])).toBe("did not return output 'label': got ['y']");
  });

  it("when elements have another type", () => {
    expect(fault({ ...good, y: new Float64Array(3) })).toBe(
      "returned a wrong output 'y' (FP32): expected Float32Array, got Float64Array",
    );
    expect(fault({ ...good, y: [["1", 2, 3]] })).toBe(
      "returned a wrong output 'y' (FP32): expected a number, got string",
    );
    expect(fault({ ...good, label: [[1]] })).toContain(
      "output 'label' (BYTES): expected a string, a Uint8Array or a plain object, got 1",
    );
  });

  it("when an array does not fill the shape", () => {
    expect(fault({ ...good, y: new Float32Array(5) }, 2)).toBe(
      "returned a wrong output 'y': expected elements for shape [2,3], got an array of 5",
    );
  });

  it("when the rank differs", () => {
    expect(fault({ ...good, y: [1, 2, 3] })).toBe(
      "returned a wrong output 'y': expected shape [-1,3], got [3]",
    );
  });

  it("when a fixed dimension differs", () => {
    expect(fault({ ...good, y: [[1, 2]] })).toBe(
      "returned a wrong output 'y': expected shape [-1,3], got [1,2]",
    );
  });

  it("when the row count differs from the batch", () => {
    expect(fault({ ...good, y: ndarray(new Float32Array(9), [3, 3]) }, 2)).toBe(
      "INTERNAL model 'm': Received output tensors with different batch sizes: y: (3, 3), label: (1, 1). Expected batch size: 2. ",
    );
  });

  it("as INTERNAL, with the cause kept", () => {
    expect(() => checker.fromCallback({ ...good, y: "no" }, 1, [])).toThrow(
      expect.objectContaining({ code: "INTERNAL", cause: expect.objectContaining({ code: "INVALID_ARG" }) }),
    );
  });
});

describe("output tensors of a backend", () => {
  it("pass when they match the declaration", () => {
    expect(tensorFault({ y: ones(2, 3) }, 2)).toBe("nothing was thrown");
  });

  it("are checked by the same rules", () => {
    expect(tensorFault({ y: Tensor.fromBytes("FP64", [1, 3], new Uint8Array(24)) })).toBe(
      "returned a wrong output 'y': expected FP32, got FP64",
    );
    expect(tensorFault({ y: ones(1, 3), z: ones(1) })).toBe("returned an unknown output 'z': expected ['y']");
    expect(tensorFault({ y: fp32([1, 3], [1, 2]) })).toBe(
      "returned a wrong output 'y': expected 3 elements for shape [1,3], got 2",
    );
    expect(tensorFault({ y: ones(1, 3) }, 2)).toBe(
      "INTERNAL model 'm': Received output tensors with different batch sizes: y: (1, 3). Expected batch size: 2. ",
    );
    expect(tensorFault({})).toBe("did not return output 'y': got []");
  });
});
