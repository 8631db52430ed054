import { describe, expect, test } from "vitest";
import { FrameReader, frame } from "../../../src/transport/frames.js";
import { timeoutOf } from "../../../src/transport/http2-transport.js";

const framed = (...messages: string[]) =>
  Buffer.concat(messages.flatMap((message) => frame([Buffer.from(message)])));

const limitOf = (bytes: number) => ({ bytes, name: "an option" });

describe("message frames", () => {
  test("are put together whatever the chunks", () => {
    const bytes = framed("one", "", "three", "x".repeat(300));
    for (const size of [1, 2, 3, 4, 5, 6, 7, 100, bytes.length]) {
      const reader = new FrameReader(limitOf(1000));
      const messages: string[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        for (const { bytes: message } of reader.push(bytes.subarray(at, at + size)))
          messages.push(message.toString());
      }
      expect(messages).toEqual(["one", "", "three", "x".repeat(300)]);
    }
  });

  test("end at an address aligned for elements of any size when they arrive in chunks", () => {
    const bytes = framed("x".repeat(1000), "next");
    const reader = new FrameReader(limitOf(2000));
    expect(reader.push(bytes.subarray(0, 400))).toEqual([]);
    const [message, next] = reader.push(bytes.subarray(400));
    expect((message!.bytes.byteOffset + message!.bytes.length) % 8).toBe(0);
    expect(next!.bytes.toString()).toBe("next");
  });

  test("are copied out of their pieces, whose memory may then change", () => {
    const content = Buffer.from(Array.from({ length: 3_000_001 }, (_, i) => i));
    const bytes = Buffer.concat(frame([content]));
    const reader = new FrameReader(limitOf(bytes.length));
    const messages = [];
    for (let at = 0; at < bytes.length; at += 65_536) {
      const piece = Buffer.from(bytes.subarray(at, at + 65_536));
      messages.push(...reader.push(piece));
      piece.fill(0xff);
    }
    expect(messages).toHaveLength(1);
    expect(messages[0]!.bytes.equals(content)).toBe(true);
  });

  test.each([
    ["small", 1000, true],
    ["large", 100_000, false],
  ])(
    "that are %s and arrive in one piece have memory of their own only if they are large",
    (_, size, isView) => {
      const piece = Buffer.concat(frame([Buffer.alloc(size, 7)]));
      const [message] = new FrameReader(limitOf(size)).push(piece);
      expect(message!.bytes.buffer === piece.buffer).toBe(isView);
      expect(message!.bytes.equals(Buffer.alloc(size, 7))).toBe(true);
    },
  );

  test("above the limit are rejected from their header", () => {
    const reader = new FrameReader(limitOf(10));
    expect(() => reader.push(Buffer.of(0, 0xff, 0xff, 0xff, 0xff))).toThrow(
      "Received message larger than max (4294967295 vs. 10)",
    );
  });

  test.each([2, 3, 128, 255])("are rejected with the flag %i", (flag) => {
    const reader = new FrameReader(limitOf(10));
    const hex = flag.toString(16).padStart(2, "0");
    expect(() => reader.push(Buffer.of(flag, 0, 0, 0, 0))).toThrow(`Bad GRPC frame type 0x${hex}`);
  });

  test("are written without copying large parts", () => {
    const large = Buffer.alloc(600_000);
    const pieces = frame([Buffer.from("head"), large, Buffer.from("tail")]);
    expect(pieces).toHaveLength(3);
    expect(pieces[1]).toBe(large);
    const [message] = new FrameReader(limitOf(1e6)).push(Buffer.concat(pieces));
    expect(message!.bytes.length).toBe(600_008);
  });
});

describe("grpc-timeout", () => {
  test.each([
    ["1S", 1000],
    ["250m", 250],
    ["5000u", 5],
    ["2M", 120_000],
    ["99999999H", undefined],
    [undefined, undefined],
  ])("%s is %s milliseconds", (header, milliseconds) => {
    expect(timeoutOf(header)).toBe(milliseconds);
  });

  test.each(["", "S", "1", "-1S", "1x", "123456789m"])("%j is rejected", (header) => {
    expect(() => timeoutOf(header)).toThrow("Invalid grpc-timeout value");
  });
});
