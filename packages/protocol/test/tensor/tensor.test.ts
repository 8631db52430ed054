import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { copyTensor, sliceRows } from "../../../core/src/tensor-rows.js";
import { thrownText } from "../../../core/test/support/requests.js";
import { bits, fp32, tensors } from "../../../core/test/support/tensors.js";
import { DATA_TYPES, elementByteSize } from "../../src/data-types.js";
import { Tensor } from "../../src/tensor.js";

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
