import { describe, expect, it } from "vitest";
import { RequestMemory } from "../../src/request/request-memory.js";

const full = (bytes: number, used: number, limit: number) => ({
  code: "UNAVAILABLE",
  retryAfterMs: 1000,
  message:
    `request refused: expected at most ${Math.max(0, limit - used)} more bytes of request memory, got ${bytes} ` +
    `(${used} of ${limit} are in use). Try again later, or raise requestMemory.byteSize (--request-memory-byte-size).`,
});

describe("the budget of request memory", () => {
  it("is shared by all requests and rejects bytes that do not fit", () => {
    const memory = new RequestMemory({ byteSize: 100 });
    const first = memory.share();
    const second = memory.share();
    first.take(60);
    second.take(40);
    expect(memory.usedBytes).toBe(100);
    expect(() => second.take(1)).toThrow(expect.objectContaining(full(1, 100, 100)));
    expect(memory.usedBytes).toBe(100);
    first.release();
    second.take(60);
    expect(memory.usedBytes).toBe(100);
    expect(memory.refusals).toEqual({ BUDGET: 1, QUEUE: 0, RATIO: 0 });
  });

  it("allows a single request to exceed it", () => {
    const memory = new RequestMemory({ byteSize: 100 });
    const large = memory.share();
    large.take(80);
    large.take(80);
    expect(() => memory.share().take(1)).toThrow(expect.objectContaining(full(1, 160, 100)));
    large.release();
    expect(memory.usedBytes).toBe(0);
  });

  it("checks announced bytes without reserving them", () => {
    const memory = new RequestMemory({ byteSize: 100 });
    memory.share().take(50);
    const announcing = memory.share();
    announcing.expect(50);
    expect(memory.usedBytes).toBe(50);
    expect(() => announcing.expect(51)).toThrow(expect.objectContaining(full(51, 50, 100)));
  });

  it("regains all bytes even when a share is released twice", () => {
    const memory = new RequestMemory({ byteSize: 100 });
    const share = memory.share();
    share.take(50);
    share.give(20);
    share.release();
    share.release();
    expect(memory.usedBytes).toBe(0);
    share.take(10);
    share.give(5);
    expect(memory.usedBytes).toBe(0);
  });

  it("keeps bytes that move to another share reserved", () => {
    const memory = new RequestMemory({ byteSize: 100 });
    const all = memory.share();
    all.take(50);
    const part = all.split(30);
    expect([all.bytes, part.bytes]).toEqual([20, 30]);
    all.release();
    expect(memory.usedBytes).toBe(30);
    expect(all.split(10).bytes).toBe(0);
    part.release();
    expect(memory.usedBytes).toBe(0);
  });
});

describe("the request memory options", () => {
  it("default to one gibibyte", () => {
    expect(new RequestMemory().limitBytes).toBeGreaterThan(0);
    expect(new RequestMemory().limitBytes).toBeLessThanOrEqual(2 ** 30);
    expect(new RequestMemory({ byteSize: 5 }).limitBytes).toBe(5);
  });

  it.each([
    ["byteSize", 0, 1],
    ["byteSize", 1.5, 1],
    ["maxDecompressions", 0, 1],
    ["maxWaitingDecompressions", -1, 0],
    ["maxCompressionRatio", Number.NaN, 0],
  ])("reject %s of %d", (name, value, least) => {
    expect(() => new RequestMemory({ [name]: value })).toThrow(
      expect.objectContaining({
        code: "INVALID_ARG",
        message: `requestMemory.${name}: expected an integer of at least ${least}, got ${value}`,
      }),
    );
  });
});
