import ndarray from "ndarray";
import { describe, expect, it, vi } from "vitest";
import { type BytesArray, bytesArray, isNdArray, ndArrayLike, toNdArray } from "../../src/nd-array.js";
import { Tensor } from "../../src/tensor.js";

const bytes = (...texts: string[]) => texts.map((text) => new TextEncoder().encode(text));

const origin = { direction: "input", name: "question", modelName: "chat" } as const;

describe("the ndarray of a BYTES tensor", () => {
  it.each([[[]], [[6]], [[2, 3]], [[1, 2, 3]], [[3, 1, 2, 1]], [[0]], [[2, 0, 3]]])(
    "of shape %j is an ndarray like that of the package",
    (shape) => {
      const elements = bytes(
        ..."abcdefgh".slice(
          0,
          shape.reduce((product, dim) => product * dim, 1),
        ),
      );
      const array = bytesArray(elements, shape, origin);
      const expected = ndarray(elements, shape);
      expect(isNdArray(array)).toBe(true);
      const { data, shape: dims, stride, offset, size, dimension } = array;
      expect({ data, dims, stride, offset, size, dimension }).toEqual({
        data: elements,
        dims: expected.shape,
        stride: expected.stride,
        offset: expected.offset,
        size: expected.size,
        dimension: expected.dimension,
      });
      expect(array).toEqual(expected);
      expect(array.strings()).toEqual([..."abcdefgh"].slice(0, elements.length));
    },
  );

  it("reads its only element as text and as JSON, whatever the shape", () => {
    for (const shape of [[], [1], [1, 1]]) {
      const array = bytesArray(bytes('{"ä":1}'), shape);
      expect(array.text()).toBe('{"ä":1}');
      expect(array.json()).toEqual({ ä: 1 });
    }
  });

  it("reads one element of several by its index, and all of them in row-major order", () => {
    const array = bytesArray(bytes("1", "[2]", "null", "true"), [2, 2]);
    expect(array.text(1, 0)).toBe("null");
    expect(array.json(0, 1)).toEqual([2]);
    expect(array.strings()).toEqual(["1", "[2]", "null", "true"]);
    expect(array.jsonValues()).toEqual([1, [2], null, true]);
  });

  it("reads the elements of views in their order", () => {
    const array = bytesArray(bytes("1", "2", "3", "4"), [2, 2]);
    expect(array.pick(1, null).strings()).toEqual(["3", "4"]);
    expect(array.pick(1, 1).text()).toBe("4");
    expect((array.transpose(1, 0) as BytesArray).data).toBe(array.data);
    const rows = ndArrayLike(array as never, bytes("5", "6"), [1, 2]) as BytesArray;
    expect(rows.jsonValues()).toEqual([5, 6]);
  });

  it.each<[string, (array: BytesArray) => unknown, string]>([
    ["no index", (array) => array.text(), "none"],
    ["too few dimensions", (array) => array.json(1), "[1]"],
    ["a row that does not exist", (array) => array.text(2, 0), "[2, 0]"],
    ["a negative index", (array) => array.text(-1, 0), "[-1, 0]"],
    ["half an index", (array) => array.text(0.5, 0), "[0.5, 0]"],
  ])("rejects %s if it has several elements", (_, read, got) => {
    const array = bytesArray(bytes("1", "2"), [2, 1], origin);
    expect(() => read(array)).toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: `input 'question' of model 'chat': expected the index of an element of shape [2, 1], got ${got}`,
      }),
    );
  });

  it("names model, tensor and element if the text is not JSON", () => {
    const tensor = Tensor.fromElements("BYTES", [2, 1], bytes("1", `{${"x".repeat(100)}`));
    const input = toNdArray(tensor, "input", "question", "chat") as BytesArray;
    const message = `'question' of model 'chat', element [1, 0]: expected JSON, got '{${"x".repeat(39)}...'`;
    for (const read of [() => input.json(1, 0), () => input.jsonValues(), () => input.pick(1, 0).json()]) {
      expect(read).toThrow(expect.objectContaining({ code: "INVALID_ARG", reason: "INVALID_INPUT" }));
    }
    expect(() => input.jsonValues()).toThrow(`input ${message}`);
    const output = toNdArray(tensor, "output", "question", "chat") as BytesArray;
    expect(() => output.json(1, 0)).toThrow(
      expect.objectContaining({ code: "INTERNAL", reason: "INVALID_OUTPUT", message: `output ${message}` }),
    );
    const like = ndArrayLike(input as never, bytes("?"), [1]) as BytesArray;
    expect(() => like.json()).toThrow("input 'question' of model 'chat': expected JSON, got '?'");
    expect(() => bytesArray(bytes("?"), [1]).json(0)).toThrow(
      "BYTES tensor, element [0]: expected JSON, got '?'",
    );
  });
});

it("the ndarray of a BYTES tensor needs no generated code where it is forbidden", async () => {
  vi.resetModules();
  vi.doMock("ndarray", () => ({
    default() {
      throw new EvalError("Code generation from strings disallowed for this context");
    },
  }));
  try {
    const fresh = await import("../../src/nd-array.js");
    const array = fresh.bytesArray(bytes("1", "2"), [2, 1], origin);
    expect([array.shape, array.stride, array.strings()]).toEqual([
      [2, 1],
      [1, 1],
      ["1", "2"],
    ]);
    expect(array.pick(1, null).json()).toBe(2);
    const plain = Object.getPrototypeOf(Object.getPrototypeOf(Object.getPrototypeOf(array)));
    expect(plain.constructor.name).toBe("InterpretedView");
  } finally {
    vi.doUnmock("ndarray");
  }
});
