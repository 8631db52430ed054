import { describe, expect, it } from "vitest";
import { createRing, RingReader, RingWriter } from "../../../src/frontend-threads/ring.js";

const CAPACITY = 1024;

function openRing() {
  const memory = createRing(CAPACITY);
  return { writer: new RingWriter(memory), reader: new RingReader(memory) };
}

/** A frame of `size` bytes whose second word is a number. */
function frameOf(number: number, size: number): Uint8Array {
  const words = new Int32Array(size / 4);
  words[0] = size;
  words[1] = number;
  return new Uint8Array(words.buffer);
}

function numbersIn(copy: ArrayBuffer): number[] {
  const words = new Int32Array(copy);
  const numbers: number[] = [];
  for (let at = 0; at < words.length; at += words[at]! / 4) numbers.push(words[at + 1]!);
  return numbers;
}

function readAll(reader: RingReader): number[] {
  const numbers: number[] = [];
  for (let copy = reader.read(); copy !== undefined; copy = reader.read()) numbers.push(...numbersIn(copy));
  return numbers;
}

describe("a ring", () => {
  it("hands out frames in order, and only after they are published", () => {
    const { writer, reader } = openRing();
    for (const number of [1, 2, 3]) expect(writer.write([frameOf(number, 32)], 32)).toBe(true);
    expect(reader.read()).toBeUndefined();
    writer.publish();
    expect(readAll(reader)).toEqual([1, 2, 3]);
  });

  it("refuses a frame while it is full, and takes it when frames have been read", () => {
    const { writer, reader } = openRing();
    let written = 0;
    while (writer.write([frameOf(written, 64)], 64)) written++;
    expect(written).toBe(CAPACITY / 64);
    writer.publish();
    expect(readAll(reader)).toHaveLength(written);
    expect(writer.write([frameOf(99, 64)], 64)).toBe(true);
  });

  it("keeps every frame in one piece when it wraps around", () => {
    const { writer, reader } = openRing();
    const got: number[] = [];
    const sizes = [24, 136, 72, 248, 8 * 13, 40];
    for (let number = 0; number < 5000; number++) {
      const size = sizes[number % sizes.length]!;
      while (!writer.write([frameOf(number, size)], size)) {
        writer.publish();
        got.push(...readAll(reader));
      }
    }
    writer.publish();
    got.push(...readAll(reader));
    expect(got).toEqual(Array.from({ length: 5000 }, (_, i) => i));
  });

  it("begins each part of a frame at a multiple of eight bytes", () => {
    const { writer, reader } = openRing();
    const head = frameOf(7, 8);
    new Int32Array(head.buffer)[0] = 24;
    writer.write([head, Uint8Array.of(1, 2, 3), Uint8Array.of(4)], 24);
    writer.publish();
    expect([...new Uint8Array(reader.read()!)].slice(8)).toEqual([
      1, 2, 3, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
    ]);
  });

  it("asks for a wake-up only if the reader sleeps", () => {
    const { writer, reader } = openRing();
    writer.write([frameOf(1, 32)], 32);
    expect(writer.publish()).toBe(false);
    expect(reader.sleep()).toBe(false);
    readAll(reader);
    expect(reader.sleep()).toBe(true);
    writer.write([frameOf(2, 32)], 32);
    expect(writer.publish()).toBe(true);
    expect(writer.publish()).toBe(false);
  });

  it("tells the reader once that the writer waits for space", () => {
    const { writer, reader } = openRing();
    expect(reader.wasAwaited()).toBe(false);
    writer.awaitSpace();
    expect(reader.wasAwaited()).toBe(true);
    expect(reader.wasAwaited()).toBe(false);
  });
});
