import { describe, expect, it } from "vitest";
import { BatchMemory } from "../../../src/worker/messages.js";

const KIB = 1024;
const MIB = 1024 * KIB;

describe("the memory of batches", () => {
  it("gives a released buffer to inputs of a similar size, and the best one", () => {
    const memory = new BatchMemory();
    const sizes = [4 * MIB, 1 * MIB, 2 * MIB];
    const [four, one, two] = sizes.map((size) => memory.allocate(size).buffer);
    memory.release([four!, one!, two!]);
    expect(memory.allocate(1.5 * MIB)).toMatchObject({ buffer: two, byteOffset: 0, byteLength: 1.5 * MIB });
    expect(memory.allocate(900 * KIB).buffer).toBe(one);
    expect(memory.allocate(900 * KIB).buffer).not.toBe(four);
    expect(memory.allocate(2 * MIB).buffer).toBe(four);
  });

  it("gives a buffer to one batch at a time", () => {
    const memory = new BatchMemory();
    memory.release([memory.allocate(MIB).buffer]);
    expect(memory.allocate(MIB).buffer).not.toBe(memory.allocate(MIB).buffer);
  });

  it("does not keep small buffers", () => {
    const memory = new BatchMemory();
    const { buffer } = memory.allocate(4 * KIB);
    memory.release([buffer]);
    expect(memory.allocate(4 * KIB).buffer).not.toBe(buffer);
  });

  it("keeps the last eight buffers, and 64 MiB", () => {
    const memory = new BatchMemory();
    const nine = Array.from({ length: 9 }, () => memory.allocate(MIB).buffer);
    memory.release(nine);
    const given = nine.map(() => memory.allocate(MIB).buffer);
    expect(nine.filter((buffer) => given.includes(buffer))).toEqual(nine.slice(1));
    const large = Array.from({ length: 3 }, () => memory.allocate(30 * MIB).buffer);
    memory.release(large);
    const again = large.map(() => memory.allocate(30 * MIB).buffer);
    expect(large.filter((buffer) => again.includes(buffer))).toEqual(large.slice(1));
  });
});
