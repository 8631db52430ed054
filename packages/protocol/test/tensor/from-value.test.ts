import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { thrownText } from "../../../core/test/support/requests.js";
import { DATA_TYPES, type DataType } from "../../src/data-types.js";
import { BFloat16Bits, Float16Bits } from "../../src/half-floats.js";
import { interpretedView } from "../../src/nd-array.js";
import type { Shape } from "../../src/tensor.js";
import { tensorFromValue } from "../../src/tensor-from-value.js";

const tensor = (value: unknown, datatype: DataType, shape: Shape) =>
  tensorFromValue(value, { what: "input 'x'", datatype, shape });

const fault = (value: unknown, datatype: DataType, shape: Shape = [-1]) =>
  thrownText(() => tensor(value, datatype, shape));

describe("an object with data and shape", () => {
  it("is refused with the values that a tensor can be made of", () => {
    expect(fault({ data: Float32Array.of(1, 2), shape: [2] }, "FP32")).toContain(
      "input 'x' (FP32): expected a number, got an object { data, shape }: make an ndarray of it with ndarray(data, shape), " +
        "or give a typed array or nested arrays",
    );
  });
});

describe("nested arrays", () => {
  it("have the shape of their nesting", () => {
    const made = tensor(
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      "FP32",
      [-1, -1],
    );
    expect(made.shape).toEqual([2, 3]);
    expect(made.elements).toEqual(Float32Array.of(1, 2, 3, 4, 5, 6));
    expect(tensor(7, "INT32", []).shape).toEqual([]);
    expect(tensor([[], []], "FP32", [-1, -1]).shape).toEqual([2, 0]);
  });

  it("hold booleans, numbers, bigints and text in tensors of fitting types", () => {
    expect(tensor([true, false, 1, 0], "BOOL", [4]).elements).toEqual(Uint8Array.of(1, 0, 1, 0));
    expect(tensor([1, 2n ** 64n - 1n], "UINT64", [2]).elements).toEqual(
      BigUint64Array.of(1n, 2n ** 64n - 1n),
    );
    expect(tensor([-5, -(2n ** 63n)], "INT64", [2]).elements).toEqual(BigInt64Array.of(-5n, -(2n ** 63n)));
    expect(tensor(["ä", Uint8Array.of(0, 255)], "BYTES", [2]).elements).toEqual([
      Uint8Array.of(0xc3, 0xa4),
      Uint8Array.of(0, 255),
    ]);
    expect(tensor([1.5, Number.NaN], "FP64", [2]).elements).toEqual(Float64Array.of(1.5, Number.NaN));
  });

  it("round to the nearest half float", () => {
    expect(tensor([1, 65520], "FP16", [2]).elements).toEqual(Uint16Array.of(0x3c00, 0x7c00));
    expect(tensor([Math.PI], "BF16", [1]).elements).toEqual(Uint16Array.of(0x4049));
  });

  it("are rejected when they are irregular", () => {
    expect(fault([[1, 2], [3]], "FP32", [-1, -1])).toBe(
      "INVALID_ARG input 'x' (FP32): expected nested arrays of shape [2,2], got 1 entries at depth 1",
    );
    expect(fault([[1], 2], "FP32", [-1, -1])).toBe(
      "INVALID_ARG input 'x' (FP32): expected nested arrays of shape [2,1], got number at depth 1",
    );
  });

  it("are rejected when they contain themselves", () => {
    const loop: unknown[] = [];
    loop.push(loop);
    expect(fault(loop, "FP32")).toBe(
      "INVALID_ARG input 'x' (FP32): expected nested arrays of at most 32 levels, got deeper ones",
    );
  });
});

describe("a list of typed arrays", () => {
  it("has one for each entry of the first dimension", () => {
    const rows = [Float32Array.of(1, 2), Float32Array.of(3, 4), Float32Array.of(5, 6)];
    const made = tensor(rows, "FP32", [-1, 2]);
    expect(made.shape).toEqual([3, 2]);
    expect(made.elements).toEqual(Float32Array.of(1, 2, 3, 4, 5, 6));
    expect(tensor(rows, "FP32", [-1, -1]).shape).toEqual([3, 2]);
    expect(tensor([BigInt64Array.of(1n)], "INT64", [1, 1]).shape).toEqual([1, 1]);
  });

  it("gets the other dimensions from the specification", () => {
    const image = Uint8Array.from({ length: 12 }, (_, i) => i);
    expect(tensor([image, image], "UINT8", [-1, 3, 2, 2]).shape).toEqual([2, 3, 2, 2]);
  });

  it("is rejected when the rows do not fit", () => {
    const row = new Float32Array(2);
    expect(fault([row, new Float32Array(3)], "FP32", [-1, 2])).toBe(
      "INVALID_ARG input 'x' (FP32): expected rows of 2 elements, got 3 in row 1",
    );
    expect(fault([row, [1, 2]], "FP32", [-1, 2])).toContain("expected a Float32Array as row 1, got an array");
    expect(fault([new Float64Array(2)], "FP32", [-1, 2])).toContain(
      "a Float32Array as row 0, got Float64Array",
    );
    expect(fault([row, row], "FP32", [4, 1])).toContain("expected rows for shape [4,1], got 2 typed arrays");
    expect(fault([row], "FP32", [-1, 3])).toContain("expected elements for shape [1,3], got an array of 2");
    expect(fault([row], "FP32", [])).toContain("expected rows for shape [], got 1 typed arrays");
  });
});

describe("an element of the wrong kind is rejected with the expected and the given kind", () => {
  const cases: [DataType, unknown, string][] = [
    ["BOOL", 2, "expected a boolean, 0 or 1, got 2"],
    ["UINT8", 256, "expected an integer in [0, 255], got 256"],
    ["UINT8", -1, "expected an integer in [0, 255], got -1"],
    ["UINT16", 65536, "expected an integer in [0, 65535], got 65536"],
    ["UINT32", 2 ** 32, "expected an integer in [0, 2^32), got 4294967296"],
    ["UINT64", -1, "expected a bigint or safe integer in [0, 2^64), got -1"],
    ["UINT64", 2n ** 64n, "expected a bigint or safe integer in [0, 2^64), got 18446744073709551616n"],
    ["INT8", -129, "expected an integer in [-128, 127], got -129"],
    ["INT16", 32768, "expected an integer in [-32768, 32767], got 32768"],
    ["INT32", 2 ** 31, "expected an integer in [-2^31, 2^31), got 2147483648"],
    ["INT32", 1.5, "expected an integer in [-2^31, 2^31), got 1.5"],
    ["INT64", 2 ** 53, "expected a bigint or safe integer in [-2^63, 2^63), got 9007199254740992"],
    ["FP16", "1", "expected a number, got string"],
    ["BF16", null, "expected a number, got null"],
    ["FP32", undefined, "expected a number, got undefined"],
    ["FP64", 1n, "expected a number, got 1n"],
    ["FP32", new Date(0), "expected a number, got Date"],
    ["BYTES", 7, "expected a string, a Uint8Array or a plain object, got 7"],
    ["BYTES", new Map(), "expected a string, a Uint8Array or a plain object, got Map"],
    ["BYTES", null, "expected a string, a Uint8Array or a plain object, got null"],
    ["BYTES", ["a"], "expected a string, a Uint8Array or a plain object, got an array"],
  ];
  it.each(cases)("%s: %s", (datatype, value, text) => {
    const given = datatype === "BYTES" && Array.isArray(value) ? ["b", value] : [value];
    expect(fault(given, datatype)).toBe(`INVALID_ARG input 'x' (${datatype}): ${text}`);
  });

  it("and this holds for every data type", () => {
    expect(new Set(cases.map(([datatype]) => datatype))).toEqual(new Set(DATA_TYPES));
  });
});

describe("typed arrays", () => {
  it("get the shape of the specification and are not copied", () => {
    const data = Float32Array.of(1, 2, 3, 4);
    const made = tensor(data, "FP32", [-1, 2]);
    expect(made.shape).toEqual([2, 2]);
    expect(made.elements).toBe(data);
  });

  it("are rejected when they do not fill the shape", () => {
    const five = new Float32Array(5);
    expect(fault(five, "FP32", [2, 2])).toBe(
      "INVALID_ARG input 'x': expected elements for shape [2,2], got an array of 5",
    );
    expect(fault(five, "FP32", [-1, 2])).toContain("expected elements for shape [-1,2]");
    expect(fault(new Float32Array(6), "FP32", [-1, -1])).toBe(
      "INVALID_ARG input 'x': expected elements for shape [-1,-1], got an array of 6; " +
        "the shape has more than one variable dimension, so give an ndarray",
    );
  });

  it("are rejected when they do not match the data type", () => {
    expect(fault(new Float64Array(2), "FP32")).toBe(
      "INVALID_ARG input 'x' (FP32): expected Float32Array, got Float64Array",
    );
    for (const [array, type, wanted] of [
      [new Uint16Array(2), "FP16", "numbers, Float32Array or Float16Bits"],
      [new Uint16Array(2), "BF16", "numbers, Float32Array or BFloat16Bits"],
      [new Float16Bits(2), "BF16", "numbers, Float32Array or BFloat16Bits"],
      [new BFloat16Bits(2), "UINT16", "Uint16Array"],
    ] as const) {
      const text = `${wanted}, got ${array.constructor.name}`;
      expect(fault(array, type)).toBe(`INVALID_ARG input 'x' (${type}): expected ${text}`);
    }
    expect(fault(new Float32Array(2), "BYTES")).toBe(
      "INVALID_ARG input 'x' (BYTES): expected an array of strings or byte arrays, got Float32Array",
    );
  });

  it("may be Buffers or clamped arrays for bytes", () => {
    for (const bytes of [Buffer.from([1, 2]), Uint8ClampedArray.of(1, 2)]) {
      expect([...(tensor(bytes, "UINT8", [2]).elements as Uint8Array)]).toEqual([1, 2]);
    }
  });

  it("become one element of a BYTES tensor", () => {
    expect(tensor(Uint8Array.of(1, 2), "BYTES", []).elements).toEqual([Uint8Array.of(1, 2)]);
  });
});

describe("ndarrays", () => {
  it("keep their own shape, and their memory when it is contiguous", () => {
    const data = Float32Array.of(1, 2, 3, 4, 5, 6);
    const made = tensor(ndarray(data, [3, 2]), "FP32", [-1, -1]);
    expect(made.shape).toEqual([3, 2]);
    expect(made.elements).toBe(data);
    expect(tensor(ndarray(data, [3, 2]).transpose(1, 0), "FP32", [-1, -1]).elements).toEqual(
      Float32Array.of(1, 3, 5, 2, 4, 6),
    );
  });

  it("may wrap lists of scalars", () => {
    expect(tensor(ndarray(["a", "b"], [2, 1]), "BYTES", [-1, 1]).elements).toEqual([
      Uint8Array.of(97),
      Uint8Array.of(98),
    ]);
    expect(tensor(ndarray([1, 2], [2]), "INT64", [2]).elements).toEqual(BigInt64Array.of(1n, 2n));
  });

  it("are rejected when their elements do not match the data type", () => {
    expect(fault(ndarray(new Float64Array(2)), "FP32")).toContain("expected Float32Array, got Float64Array");
    expect(fault(ndarray(new Float64Array(2)), "BYTES")).toContain(
      "expected an array of strings or byte arrays",
    );
  });
});

describe("elements of a BYTES tensor", () => {
  const textsOf = ({ elements }: ReturnType<typeof tensor>) =>
    (elements as Uint8Array[]).map((element) => new TextDecoder().decode(element));

  it("may be plain objects, which become JSON", () => {
    const bare = Object.assign(Object.create(null), { b: "ä" });
    expect(textsOf(tensor([{ a: [1] }, bare, "c"], "BYTES", [-1]))).toEqual(['{"a":[1]}', '{"b":"ä"}', "c"]);
  });

  it("are rejected when JSON cannot express them", () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    const cannot =
      "INVALID_ARG input 'x' (BYTES): expected an object that JSON can express, got one that it cannot";
    expect(fault([loop], "BYTES")).toContain(`${cannot}: Converting circular structure to JSON`);
    expect(fault([{ big: 1n }], "BYTES")).toContain(cannot);
    expect(fault([{ toJSON() {} }], "BYTES")).toBe(`${cannot}: its toJSON() returned nothing`);
  });

  it("get the shape of the specification when they come in one list", () => {
    const made = tensor(["a", Uint8Array.of(98), {}], "BYTES", [-1, 1]);
    expect([made.shape, textsOf(made)]).toEqual([
      [3, 1],
      ["a", "b", "{}"],
    ]);
    expect(tensor([], "BYTES", [-1, 1]).shape).toEqual([0, 1]);
    expect(fault(["a"], "BYTES", [-1, 2])).toBe(
      "INVALID_ARG input 'x': expected elements for shape [-1,2], got an array of 1",
    );
  });
});

describe("a single scalar", () => {
  const scalar = (value: unknown, datatype: DataType, shape: Shape) =>
    tensorFromValue(value, { what: "input 'x'", datatype, shape, takesScalar: true });

  it("fills a shape of one element where it is allowed", () => {
    expect(scalar(2, "FP32", [-1, 1]).shape).toEqual([1, 1]);
    expect(scalar(2n, "INT64", [1]).elements).toEqual(BigInt64Array.of(2n));
    expect(scalar(Uint8Array.of(1), "BYTES", [1]).elements).toEqual([Uint8Array.of(1)]);
    expect(scalar({ a: 1 }, "BYTES", [1]).shape).toEqual([1]);
    expect(scalar(true, "BOOL", []).shape).toEqual([]);
    expect(() => scalar("a", "FP32", [1])).toThrow("input 'x' (FP32): expected a number, got string");
  });

  it("has no shape elsewhere", () => {
    expect(scalar(2, "FP32", [2]).shape).toEqual([]);
    expect(tensor(2, "FP32", [1]).shape).toEqual([]);
  });
});

const data = Float32Array.from({ length: 24 }, (_, i) => i);

/** Pairs of arrays with the same elements: from the package, and without generated code. */
function pair(shape: number[]) {
  return [ndarray(data, shape), interpretedView(data, shape)] as const;
}

type View = ReturnType<typeof pair>[number];

/** Everything that can be read of an array. */
function read(view: View): unknown {
  const { shape, stride, offset, size, dimension, dtype } = view;
  const elements: unknown[] = [];
  const walk = (indices: number[]): void => {
    if (indices.length === shape.length) elements.push([view.index(...indices), view.get(...indices)]);
    else for (let i = 0; i < shape[indices.length]!; i++) walk([...indices, i]);
  };
  walk([]);
  const about = { shape: [...shape], stride: [...stride], offset, size, dimension, dtype };
  return { ...about, order: [...view.order], elements };
}

describe("an ndarray without generated code", () => {
  it.each<[string, (view: View) => unknown]>([
    ["itself", (view) => view],
    ["lo", (view) => view.lo(1, 0, 2)],
    ["lo of some axes", (view) => view.lo(null as never, 1)],
    ["hi", (view) => view.hi(1, 2, 3)],
    ["hi of some axes", (view) => view.hi(null as never, 2)],
    ["step", (view) => view.step(1, 2, 3)],
    ["step backwards", (view) => view.step(-1, 1, -2)],
    ["transpose", (view) => view.transpose(2, 0, 1)],
    ["pick", (view) => view.pick(1, null, 2)],
    ["pick of one axis", (view) => view.pick(null, 2)],
    ["pick of all axes", (view) => view.pick(1, 2, 3)],
    ["several in a row", (view) => view.lo(0, 1, 1).step(1, 1, -1).transpose(1, 2, 0).pick(1).hi(2, 1)],
  ])("gives the same view as the package: %s", (_name, operation) => {
    const [expected, own] = pair([2, 3, 4]);
    expect(read(operation(own) as View)).toEqual(read(operation(expected) as View));
  });

  it("has the same members for every number of dimensions", () => {
    for (const shape of [[], [24], [4, 6], [1, 2, 3, 4]]) {
      const [expected, own] = pair(shape);
      expect(read(own)).toEqual(read(expected));
    }
    expect(interpretedView(Uint8Array.of(7), []).valueOf()).toBe(7);
  });

  it("writes into the elements", () => {
    const view = interpretedView(Int32Array.of(1, 2, 3, 4), [2, 2]);
    view.set(1, 0, 9);
    expect([...(view.data as Int32Array)]).toEqual([1, 2, 9, 4]);
  });
});
