import { randomBytes } from "node:crypto";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import type { RequestMemoryOptions } from "@tritonjs/core";
import { describe, expect, it } from "vitest";
import { type CompressionFormat, RequestMemory } from "../../src/service/request-memory.js";

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

const MIB = 2 ** 20;

/** Unpacks as a frontend does: the share holds the compressed bytes. */
function open(options?: RequestMemoryOptions) {
  const memory = new RequestMemory(options);
  const unpack = (input: Uint8Array, compression: CompressionFormat = "gzip", given: Given = {}) => {
    const { maxBytes = 512 * MIB, abort = new AbortController() } = given;
    const share = memory.share();
    share.take(input.byteLength);
    const output = memory
      .unpack(input, compression, { maxBytes, share, signal: abort.signal })
      .finally(() => expect(share.bytes).toBeGreaterThan(0));
    return { output, share, abort };
  };
  return { memory, unpack };
}

interface Given {
  readonly maxBytes?: number;
  readonly abort?: AbortController;
}

/** A compressed input that takes long to unpack. */
const long = Buffer.concat(Array<Buffer>(512).fill(gzipSync(Buffer.alloc(MIB))));

describe("inflate", () => {
  it("decompression stops as soon as the output exceeds the budget", async () => {
    const { memory, unpack } = open({ byteSize: 4 * MIB, maxCompressionRatio: 0 });
    const other = memory.share();
    other.take(1000);
    const { output, share } = unpack(long);
    await expect(output).rejects.toMatchObject({ code: "UNAVAILABLE", retryAfterMs: 1000 });
    expect(memory.usedBytes).toBeLessThanOrEqual(4 * MIB);
    share.release();
    expect(memory.usedBytes).toBe(1000);
    expect(memory.refusals).toEqual({ BUDGET: 1, QUEUE: 0, RATIO: 0 });
  });
});

describe("a compressed request", () => {
  const plain = Buffer.concat([randomBytes(200_000), Buffer.alloc(300_000)]);

  it.each<[CompressionFormat, Buffer]>([
    ["gzip", gzipSync(plain)],
    ["gzip", Buffer.concat([gzipSync(plain.subarray(0, 9)), gzipSync(plain.subarray(9))])],
    ["deflate", deflateSync(plain)],
    ["gzip-data", Buffer.concat([deflateRawSync(plain), Buffer.from("followed by anything")])],
  ])("is unpacked from %s, and its share holds the unpacked bytes instead", async (compression, input) => {
    const { memory, unpack } = open();
    const { output, share } = unpack(input, compression);
    expect((await output).equals(plain)).toBe(true);
    expect(memory.usedBytes).toBe(plain.length);
    share.release();
    expect(memory.usedBytes).toBe(0);
  });

  it.each([0, 1, 2 ** 32 - 1])("is unpacked although it claims a size of %d bytes", async (size) => {
    const input = gzipSync(plain).subarray(10);
    input.writeUInt32LE(size, input.length - 4);
    const output = await open().unpack(input, "gzip-data").output;
    expect(output.equals(plain)).toBe(true);
    expect(output.buffer.byteLength).toBeLessThanOrEqual(2 * plain.length);
  });

  it("is rejected when it unpacks to more than the largest size", async () => {
    const { output } = open().unpack(gzipSync(plain), "gzip", { maxBytes: plain.length - 1 });
    await expect(output).rejects.toMatchObject({ name: "UnpackFault", kind: "SIZE" });
    const { output: just } = open().unpack(gzipSync(plain), "gzip", { maxBytes: plain.length });
    expect(await just).toHaveLength(plain.length);
  });

  it.each([
    ["no data", 0],
    ["half of the data", 100_000],
  ])("is rejected when there is %s", async (_how, length) => {
    const { output } = open().unpack(gzipSync(plain).subarray(0, Math.max(length, 1)));
    await expect(output).rejects.toMatchObject({ name: "UnpackFault", kind: "DATA" });
  });
});

describe("the compression ratio", () => {
  const bomb = gzipSync(Buffer.alloc(9 * MIB));

  it("is limited for requests above 8 MiB", async () => {
    const { memory, unpack } = open();
    const { output } = unpack(bomb);
    await expect(output).rejects.toMatchObject({
      kind: "RATIO",
      message:
        `the decompressed request has more than 100 times its compressed size of ${bomb.length} bytes. Raise ` +
        "requestMemory.maxCompressionRatio (--max-compression-ratio).",
    });
    expect(memory.refusals.RATIO).toBe(1);
  });

  it("is not checked for smaller requests", async () => {
    expect(await open().unpack(gzipSync(Buffer.alloc(8 * MIB))).output).toHaveLength(8 * MIB);
  });

  it.each([0, 1100])("is unlimited with a limit of %d", async (maxCompressionRatio) => {
    expect(await open({ maxCompressionRatio }).unpack(bomb).output).toHaveLength(9 * MIB);
  });
});

describe("concurrent decompressions", () => {
  it("run in order of arrival, at most the allowed number at a time", async () => {
    const { unpack } = open({ maxDecompressions: 1 });
    const ended: string[] = [];
    const run = (name: string, size: number) =>
      unpack(gzipSync(Buffer.alloc(size))).output.then(() => void ended.push(name));
    await Promise.all([run("large", 4 * MIB), run("small", 10), run("larger", 5 * MIB), run("smallest", 1)]);
    expect(ended).toEqual(["large", "small", "larger", "smallest"]);
  });

  it("are rejected when too many wait", async () => {
    const { memory, unpack } = open({ maxDecompressions: 1, maxWaitingDecompressions: 1 });
    const input = gzipSync("x");
    const [first, second, third] = [unpack(input), unpack(input), unpack(input)];
    await expect(third!.output).rejects.toMatchObject({
      code: "UNAVAILABLE",
      retryAfterMs: 1000,
      message:
        "request refused: too many compressed requests wait to be decompressed (1 run, 1 wait). Try again later, or raise " +
        "requestMemory.maxWaitingDecompressions (--max-waiting-decompressions).",
    });
    expect((await Promise.all([first!.output, second!.output])).map(String)).toEqual(["x", "x"]);
    expect(memory.refusals.QUEUE).toBe(1);
  });

  it("start the next request when one is cancelled while it waits or is being unpacked", async () => {
    const { memory, unpack } = open({ maxDecompressions: 1, maxCompressionRatio: 0 });
    const running = unpack(long);
    const waiting = unpack(long);
    const last = unpack(gzipSync("x"));
    waiting.abort.abort();
    await expect(waiting.output).rejects.toMatchObject({ code: "CANCELLED" });
    await expect.poll(() => running.share.bytes, { interval: 1 }).toBeGreaterThan(2 * long.length);
    running.abort.abort();
    await expect(running.output).rejects.toMatchObject({ code: "CANCELLED" });
    expect(running.share.bytes).toBeLessThan(512 * MIB);
    expect(String(await last.output)).toBe("x");
    for (const { share } of [running, waiting, last]) share.release();
    expect(memory.usedBytes).toBe(0);
  });
});
