import fc from "fast-check";
import ndarray from "ndarray";
import { describe, expect, it } from "vitest";
import { copyTensor, sliceRows } from "../../../core/src/tensor-rows.js";
import { thrownText } from "../../../core/test/support/requests.js";
import { bits, fp32, tensors } from "../../../core/test/support/tensors.js";
import {
  DATA_TYPES,
  type DataType,
  type Elements,
  elementByteSize,
  fromConfigDataType,
  isDataType,
  toConfigDataType,
  typedArrayFor,
} from "../../src/data-types.js";
import { ndArrayLike, ndArrayOf } from "../../src/nd-array.js";
import {
  decodeBytes,
  elementCount,
  encodeBytes,
  encodedByteLength,
  matchesShape,
  sameShape,
  scanBytes,
  shapeToString,
  Tensor,
} from "../../src/tensor.js";
import { inputTensor } from "../../src/tensor-from-value.js";

const fixedSize = DATA_TYPES.filter((datatype) => datatype !== "BYTES");

describe("a tensor over bytes", () => {
  it.each(fixedSize)("views %s elements in place when they are aligned", (datatype) => {
    const memory = new Uint8Array(32);
    const tensor = Tensor.fromBytes(datatype, [1], memory.subarray(8, 8 + elementByteSize(datatype)));
    expect(tensor.elements.length).toBe(1);
    expect((tensor.elements as Uint8Array).buffer).toBe(memory.buffer);
  });

  it.each(fixedSize)("copies %s elements when they are not aligned, also out of a Buffer", (datatype) => {
    const size = elementByteSize(datatype);
    for (const memory of [new Uint8Array(33), Buffer.alloc(33)]) {
      memory.set(Array.from({ length: 33 }, (_, i) => i));
      const expected = Array.from({ length: 2 * size }, (_, i) => i + 1);
      const tensor = Tensor.fromBytes(datatype, [2], memory.subarray(1, 1 + 2 * size));
      const { buffer, byteOffset, byteLength } = tensor.elements as Uint8Array;
      expect([...new Uint8Array(buffer, byteOffset, byteLength)]).toEqual(expected);
    }
  });

  it("rejects bytes that are not whole elements when the elements are read", () => {
    const tensor = Tensor.fromBytes("FP32", [2], new Uint8Array(7));
    expect(thrownText(() => tensor.elements)).toBe(
      "INVALID_ARG expected a whole number of FP32 elements, got 7 bytes",
    );
  });

  it("creates the elements once", () => {
    const tensor = Tensor.fromBytes("BYTES", [1], Uint8Array.of(1, 0, 0, 0, 97));
    expect(tensor.hasElements).toBe(false);
    expect(tensor.elements).toBe(tensor.elements);
    expect(tensor.hasElements).toBe(true);
  });
});

describe("a tensor over elements", () => {
  it("returns a view of exactly those elements as its bytes", () => {
    const memory = Float32Array.of(1, 2, 3, 4);
    const tensor = Tensor.fromElements("FP32", [2], memory.subarray(1, 3));
    expect(tensor.bytes.buffer).toBe(memory.buffer);
    expect([tensor.bytes.byteOffset, tensor.bytes.byteLength, tensor.byteLength]).toEqual([4, 8, 8]);
  });

  it("is little-endian", () => {
    expect([...Tensor.fromElements("UINT32", [1], Uint32Array.of(0x01020304)).bytes]).toEqual([4, 3, 2, 1]);
  });

  it("shares its memory when it is reshaped", () => {
    const tensor = fp32([4], [1, 2, 3, 4]);
    expect(tensor.reshaped([2, 2]).elements).toBe(tensor.elements);
    expect(tensor.reshaped([2, 2]).shape).toEqual([2, 2]);
  });
});

describe("rows of a tensor", () => {
  it("are a view for data types of fixed size", () => {
    const tensor = fp32([3, 2], [1, 2, 3, 4, 5, 6]);
    const rows = sliceRows(tensor, 1, 2);
    expect(rows.shape).toEqual([2, 2]);
    expect(rows.elements).toEqual(Float32Array.of(3, 4, 5, 6));
    expect((rows.elements as Float32Array).buffer).toBe((tensor.elements as Float32Array).buffer);
  });

  it("exclude the bytes of neighbouring rows", () => {
    expect(sliceRows(fp32([3, 2], [1, 2, 3, 4, 5, 6]), 1, 1).bytes.byteLength).toBe(8);
  });

  it("are the tensor itself when all rows are taken", () => {
    const tensor = fp32([2, 1], [1, 2]);
    expect(sliceRows(tensor, 0, 2)).toBe(tensor);
  });
});

describe("a copy of a tensor", () => {
  it.each(DATA_TYPES)("has the same %s bits and shares no memory", (datatype) => {
    fc.assert(
      fc.property(tensors(datatype, [2, 3]), (tensor) => {
        const before = bits(tensor);
        const copy = copyTensor(tensor);
        expect(bits(copy)).toEqual(before);
        for (const element of datatype === "BYTES" ? (copy.elements as Uint8Array[]) : [copy.bytes]) {
          element.fill(0xaa);
        }
        expect(bits(tensor)).toEqual(before);
      }),
      { numRuns: 20 },
    );
  });
});

describe("a part of an array", () => {
  const whole = Float32Array.of(1, 2, 3, 4, 5);
  const part = () => Tensor.fromPart("FP32", [1, 2], whole, 1, 2);

  it("has its elements, bytes and size, in whatever order they are read", () => {
    const [one, other] = [part(), part()];
    expect(one.byteLength).toBe(8);
    expect(new Float32Array(one.bytes.slice().buffer)).toEqual(Float32Array.of(2, 3));
    expect(one.elements).toEqual(Float32Array.of(2, 3));
    expect(other.elements).toEqual(Float32Array.of(2, 3));
    expect(other.byteLength).toBe(8);
    expect(other.bytes).toEqual(one.bytes);
  });

  it("keeps its elements under another shape", () => {
    const reshaped = part().reshaped([2]);
    expect([reshaped.shape, reshaped.elements]).toEqual([[2], Float32Array.of(2, 3)]);
  });

  it("is copied to memory of its own, also from a Buffer", () => {
    const copy = part().copyElements() as Float32Array;
    expect(copy).toEqual(Float32Array.of(2, 3));
    expect(copy.buffer).not.toBe(whole.buffer);
    const buffer = Buffer.from([1, 2, 3]);
    const bytes = Tensor.fromPart("UINT8", [2], buffer, 1, 2).copyElements() as Uint8Array;
    buffer.fill(0);
    expect([bytes.constructor, [...bytes]]).toEqual([Uint8Array, [2, 3]]);
  });
});

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

describe("elementCount", () => {
  it("is the product of the dimensions: 1 for a scalar, and 0 where a dimension is 0", () => {
    expect([elementCount([]), elementCount([3]), elementCount([2, 3, 4]), elementCount([5, 0])]).toEqual([
      1, 3, 24, 0,
    ]);
  });

  it("rejects a product that a number cannot hold exactly", () => {
    expect(elementCount([2 ** 26, 2 ** 26])).toBe(2 ** 52);
    expect(thrownText(() => elementCount([2 ** 27, 2 ** 27]))).toBe(
      "INVALID_ARG the number of elements of shape [134217728,134217728] is too large",
    );
  });

  it("rejects dimensions that are not non-negative integers", () => {
    for (const dim of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(thrownText(() => elementCount([2, dim]))).toBe(
        `INVALID_ARG invalid dimension ${dim} in shape [2,${dim}]`,
      );
    }
  });

  it("rejects an overflow even when a later dimension is 0", () => {
    expect(thrownText(() => elementCount([2 ** 600, 2, 0]))).toContain("invalid dimension");
  });
});

describe("shapes", () => {
  it("are printed without spaces", () => {
    expect(shapeToString([-1, 16])).toBe("[-1,16]");
    expect(shapeToString([])).toBe("[]");
  });

  it("are equal when all dimensions are", () => {
    expect(sameShape([2, 3], [2, 3])).toBe(true);
    expect(sameShape([2, 3], [2, 4])).toBe(false);
    expect(sameShape([2, 3], [2, 3, 1])).toBe(false);
  });

  it("match a specification in which -1 means any size", () => {
    expect(matchesShape([-1, 3], [7, 3])).toBe(true);
    expect(matchesShape([-1, 3], [7, 4])).toBe(false);
    expect(matchesShape([-1], [7, 3])).toBe(false);
    expect(matchesShape([], [])).toBe(true);
  });
});

describe("data types", () => {
  it("are the fourteen types of the protocol", () => {
    expect([...DATA_TYPES].sort()).toEqual(
      "BF16 BOOL BYTES FP16 FP32 FP64 INT16 INT32 INT64 INT8 UINT16 UINT32 UINT64 UINT8".split(" "),
    );
    expect(DATA_TYPES.every(isDataType)).toBe(true);
  });

  it("are distinguished from other words, including names of Object's prototype", () => {
    for (const word of ["fp32", "STRING", "constructor", "toString", "", undefined, 3]) {
      expect(isDataType(word)).toBe(false);
    }
  });

  it("have the element sizes of the wire format", () => {
    const sizes = Object.fromEntries(DATA_TYPES.map((datatype) => [datatype, elementByteSize(datatype)]));
    expect(sizes).toEqual({
      BOOL: 1,
      UINT8: 1,
      UINT16: 2,
      UINT32: 4,
      UINT64: 8,
      INT8: 1,
      INT16: 2,
      INT32: 4,
      INT64: 8,
      FP16: 2,
      BF16: 2,
      FP32: 4,
      FP64: 8,
      BYTES: 0,
    });
  });

  it("map to typed arrays of their kind; half floats are held as bits", () => {
    expect(typedArrayFor("INT64")).toBe(BigInt64Array);
    expect(typedArrayFor("BOOL")).toBe(Uint8Array);
    expect(typedArrayFor("FP16")).toBe(Uint16Array);
    expect(typedArrayFor("BF16")).toBe(Uint16Array);
  });

  it("have a name in configurations; that of BYTES is TYPE_STRING", () => {
    expect(toConfigDataType("BYTES")).toBe("TYPE_STRING");
    expect(toConfigDataType("FP32")).toBe("TYPE_FP32");
    for (const datatype of DATA_TYPES) expect(fromConfigDataType(toConfigDataType(datatype))).toBe(datatype);
  });

  it("are undefined for unknown configuration names", () => {
    for (const name of ["TYPE_BYTES", "TYPE_INVALID", "TYPE_", "", "TYPE_constructor"]) {
      expect(fromConfigDataType(name)).toBeUndefined();
    }
  });
});

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const lists = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 20 });

describe("the BYTES codec", () => {
  it("writes each element behind its length as a little-endian uint32", () => {
    const encoded = encodeBytes([Buffer.from("ab"), new Uint8Array(), new Uint8Array(258).fill(7)]);
    expect(hex(encoded.subarray(0, 14))).toBe("02000000616200000000" + "02010000");
    expect(encoded.byteLength).toBe(
      encodedByteLength([new Uint8Array(2), new Uint8Array(), new Uint8Array(258)]),
    );
  });

  it("reads back what it wrote", () => {
    fc.assert(
      fc.property(lists, (elements) => {
        expect(decodeBytes(encodeBytes(elements)).map(hex)).toEqual(elements.map(hex));
      }),
    );
  });

  it("reads elements as views, whatever the alignment of the data", () => {
    const encoded = encodeBytes([Buffer.from("hello"), Buffer.from("x")]);
    const shifted = new Uint8Array(encoded.byteLength + 3);
    shifted.set(encoded, 3);
    const [hello, x] = decodeBytes(shifted.subarray(3));
    expect(hello!.buffer).toBe(shifted.buffer);
    expect([hello, x].map((element) => Buffer.from(element!).toString())).toEqual(["hello", "x"]);
  });

  it("rejects data that ends inside an element, at every possible place", () => {
    const encoded = encodeBytes([Buffer.from("abc"), Buffer.from("d")]);
    const whole = new Set([0, 7, encoded.byteLength]);
    for (let length = 0; length <= encoded.byteLength; length++) {
      const thrown = thrownText(() => decodeBytes(encoded.subarray(0, length)));
      expect(thrown).toBe(
        whole.has(length)
          ? "nothing was thrown"
          : `INVALID_ARG BYTES data of ${length} bytes ends in the middle of an element`,
      );
    }
  });

  it("rejects a missing element of 4 GiB - 1 without allocating memory for it", () => {
    const thrown = thrownText(() => decodeBytes(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 1)));
    expect(thrown).toBe("INVALID_ARG BYTES data of 5 bytes ends in the middle of an element");
  });

  it("decodes random bytes or rejects them with INVALID_ARG", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (raw) => {
        const thrown = thrownText(() => decodeBytes(raw));
        expect(thrown).toMatch(/^(nothing was thrown|INVALID_ARG .*)$/);
        if (thrown.startsWith("nothing")) expect(hex(encodeBytes(decodeBytes(raw)))).toBe(hex(raw));
      }),
    );
  });
});

describe("scanning serialized elements", () => {
  it("counts whole elements and reports no fault", () => {
    fc.assert(
      fc.property(lists, (elements) => {
        expect(scanBytes(encodeBytes(elements), elements.length)).toEqual({ elements: elements.length });
      }),
    );
  });

  it("stops at the first element past the limit", () => {
    expect(scanBytes(encodeBytes([1, 2, 3, 4].map((n) => Uint8Array.of(n))), 2)).toEqual({ elements: 3 });
  });

  it("reports how many bytes are left where a length does not fit", () => {
    const encoded = encodeBytes([Uint8Array.of(1)]);
    expect(scanBytes(Buffer.concat([encoded, Buffer.alloc(3)]), 9)).toEqual({
      elements: 1,
      lengthBytesLeft: 3,
    });
  });

  it("reports the length of an element that is cut short, and the bytes left of it", () => {
    expect(scanBytes(Uint8Array.of(5, 0, 0, 0, 97, 98), 9)).toEqual({
      elements: 1,
      truncated: { expected: 5, available: 2 },
    });
  });
});

const utf8 = (text: string) => new TextEncoder().encode(text);

function array<D extends DataType>(datatype: D, elements: Elements, shape: readonly number[]) {
  return ndArrayOf(elements, shape, datatype, "output", "y", "m");
}

describe("an array becomes nested lists", () => {
  it.each<[DataType, Elements, readonly number[], unknown]>([
    ["FP32", Float32Array.of(1, 2, 3, 4, 5, 6), [2, 3], [[1, 2, 3], [4, 5, 6]]], // biome-ignore format: a matrix
    ["FP64", Float64Array.of(0.1), [1, 1, 1], [[[0.1]]]],
    ["UINT8", Uint8Array.of(7), [], 7],
    ["INT32", new Int32Array(0), [2, 0], [[], []]],
    ["INT32", new Int32Array(0), [0, 2], []],
    ["BOOL", Uint8Array.of(0, 1), [2], [false, true]],
    ["FP16", Uint16Array.of(0x3c00, 0xc000), [2], [1, -2]],
    ["BF16", Uint16Array.of(0x3f80), [1], [1]],
    ["BYTES", [utf8("é"), utf8("")], [2, 1], [["é"], [""]]],
    ["INT64", BigInt64Array.of(-5n, 2n ** 53n - 1n, 2n ** 53n, -(2n ** 63n)), [4],
      [-5, 2 ** 53 - 1, "9007199254740992", "-9223372036854775808"]], // biome-ignore format: one row
    ["UINT64", BigUint64Array.of(1n, 2n ** 64n - 1n), [2], [1, "18446744073709551615"]],
  ])("%s of %o", (datatype, elements, shape, expected) => {
    const made = array(datatype, elements, shape);
    expect(made.toArray()).toEqual(expected);
    expect(JSON.parse(JSON.stringify({ y: made }))).toEqual({ y: expected });
  });

  it("also of views, in the order of the view", () => {
    const x = array("INT64", BigInt64Array.of(1n, 2n, 3n, 4n, 5n, 6n), [2, 3]);
    expect(x.pick(1, null).toArray()).toEqual([4, 5, 6]);
    expect(x.pick(1, 2).toArray()).toBe(6);
    expect(x.pick(1, 2).pick().toArray()).toBe(6);
    expect(x.transpose(1, 0).toArray()).toEqual([[1, 4], [2, 5], [3, 6]]); // biome-ignore format: a matrix
    expect(x.lo(0, 1).hi(2, 1).toArray()).toEqual([[2], [5]]);
    expect(x.step(1, -2).toArray()).toEqual([[3, 1], [6, 4]]); // biome-ignore format: a matrix
    const names = array("BYTES", ["a", "b", "c", "d"].map(utf8), [2, 2]);
    expect(names.transpose(1, 0).lo(1).toArray()).toEqual([["b", "d"]]);
    expect(ndArrayLike(array("BOOL", Uint8Array.of(1, 0), [2]), Uint8Array.of(1), [1])).toMatchObject({
      toArray: expect.any(Function),
    });
    expect(JSON.stringify(ndArrayLike(array("BOOL", Uint8Array.of(1, 0), [2]), Uint8Array.of(1), [1]))).toBe(
      "[true]",
    );
  });

  it("without a trace on the arrays of the ndarray package", () => {
    array("FP32", new Float32Array(4), [2, 2]).toArray();
    expect(ndarray(new Float32Array(4), [2, 2])).not.toHaveProperty("toJSON");
    expect(ndarray([1, 2])).not.toHaveProperty("toArray");
  });

  it("whose strides stay inside the elements", () => {
    const x = array("FP32", new Float32Array(4), [2, 2]);
    x.stride[0] = 9;
    expect(() => JSON.stringify(x)).toThrow(
      "ndarray of shape [2,2] and stride [9,1]: expected more elements than its 4",
    );
  });
});
