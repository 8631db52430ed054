import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { thrownText } from "../../../core/test/support/requests.js";
import { decodeBytes, encodeBytes, encodedByteLength, scanBytes } from "../../src/tensor.js";

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
