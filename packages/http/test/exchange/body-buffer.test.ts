import { describe, expect, it } from "vitest";
import { BodyBuffer } from "../../src/exchange/request.js";

const MIB = 1024 * 1024;

describe("the memory for a body", () => {
  it("is not allocated for the announced size alone", () => {
    const body = new BodyBuffer(64 * MIB, 60 * MIB, undefined);
    body.add(Uint8Array.of(1));
    expect(body.bytes().buffer.byteLength).toBeLessThanOrEqual(MIB);
  });

  it("is a few bytes for the first byte of any body, and at most eight times the bytes that have come", () => {
    for (const declared of [undefined, 2048, MIB, 60 * MIB]) {
      const body = new BodyBuffer(64 * MIB, declared, undefined);
      body.add(Uint8Array.of(1));
      expect(body.bytes().buffer.byteLength).toBeLessThanOrEqual(1024 + 8);
      let length = 1;
      for (; length < 1_000_000; length += 1000) {
        body.add(new Uint8Array(1000));
        expect(body.bytes().buffer.byteLength).toBeLessThanOrEqual(8 * (length + 1000) + 8);
        if (declared === 2048) break;
      }
    }
  });

  it.each([
    [undefined, "request JSON size of 65601 bytes exceeds the maximum allowed input size of 65600 bytes"],
    [0, "Raw input has a byte_size (65601 bytes) that exceeds the maximum allowed value of 8 bytes"],
    [4, "request body size of 65601 bytes exceeds the maximum allowed input size of 65600 bytes"],
  ])("is not allocated beyond the limit: tensors at %s", (tensorsAt, text) => {
    expect(() => new BodyBuffer(8, 8 * 8 + 64 * 1024 + 1, tensorsAt)).toThrow(text);
  });

  it("is one aligned piece once a part has arrived", () => {
    const body = new BodyBuffer(64 * MIB, 3 * MIB, 5);
    for (let i = 0; i < 6; i++) body.add(new Uint8Array(MIB / 2).fill(i));
    const { buffer, byteOffset, length } = body.bytes();
    expect([length, (byteOffset + 5) % 8]).toEqual([3 * MIB, 0]);
    expect(buffer.byteLength).toBe(3 * MIB + 3);
    expect([0, 1, 2, 3, 4, 5].map((i) => body.bytes()[(i * MIB) / 2])).toEqual([0, 1, 2, 3, 4, 5]);
  });
});
