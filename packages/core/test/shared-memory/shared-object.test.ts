import { ftruncateSync } from "node:fs";
import { encodeBytes, Tensor } from "@tritonjs/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { SharedMemoryRegion } from "../../src/shared-memory/index.js";
import {
  DescriptorObject,
  loadPosix,
  MappedObject,
  type Posix,
  type SharedObject,
} from "../../src/shared-memory/shared-object.js";
import { cannotShrink, openRegion, uniqueKey } from "./open-memory.js";

const posix = await loadPosix();

describe.each<[string, (posix: Posix, descriptor: number) => SharedObject]>([
  ["through its descriptor", (_posix, descriptor) => new DescriptorObject(descriptor)],
  ["mapped into memory", (from, descriptor) => new MappedObject(from, descriptor)],
])("a shared memory object %s", (_way, make) => {
  test("is read and written at any offset", async () => {
    const region = await openRegion(10_000);
    const object = make(posix, posix.open(region.key));
    onTestFinished(() => object.close());
    expect(object.byteSize()).toBe(10_000);
    expect(object.write(4093, Uint8Array.of(1, 2, 3, 4, 5))).toBe(true);
    expect([...region.read(4092, 7)]).toEqual([0, 1, 2, 3, 4, 5, 0]);
    const bytes = new Uint8Array(16).fill(9).subarray(4, 8);
    expect(object.read(4094, bytes)).toBe(true);
    expect([...new Uint8Array(bytes.buffer)].slice(3, 9)).toEqual([9, 2, 3, 4, 5, 9]);
    expect(object.write(9999, Uint8Array.of(7))).toBe(true);
    expect(object.read(10_000, new Uint8Array(0))).toBe(true);
  });

  test("rejects access past its end, and does not grow", async () => {
    const region = await openRegion(8192);
    const descriptor = posix.open(region.key);
    const object = make(posix, descriptor);
    onTestFinished(() => object.close());
    expect(object.read(8190, new Uint8Array(3))).toBe(false);
    expect(object.write(8190, new Uint8Array(3))).toBe(false);
    expect(object.read(0, new Uint8Array(8192))).toBe(true);
    if (cannotShrink) return;
    ftruncateSync(descriptor, 10);
    expect(object.read(4096, new Uint8Array(1))).toBe(false);
    expect(object.write(8, new Uint8Array(4))).toBe(false);
    expect(object.byteSize()).toBe(10);
  });
});

describe("a shared memory region of a client", () => {
  test("returns bytes and tensors as they were written", async () => {
    const region = await openRegion(64);
    region.write(Float32Array.of(1, 2, 3));
    region.write(Tensor.fromElements("INT64", [1], BigInt64Array.of(-5n)), 16);
    expect([...(region.tensor("FP32", [3]).elements as Float32Array)]).toEqual([1, 2, 3]);
    expect(region.tensor("INT64", [1], 16).elements).toEqual(BigInt64Array.of(-5n));
    expect(region.read(0, 4)).toEqual(new Uint8Array(Float32Array.of(1).buffer));
    expect(region.read()).toHaveLength(64);
    expect(() => region.write(new Uint8Array(8), 60)).toThrow(
      `shared memory region '${region.key}': expected at most 64 bytes, got 8 bytes at offset 60`,
    );
    expect(() => region.read(-1, 2)).toThrow("expected at most 64 bytes");
    expect(() => region.read(0.5, 2)).toThrow("expected at most 64 bytes");
  });

  test("returns strings, and rejects more strings than it holds", async () => {
    const region = await openRegion(64);
    region.write(encodeBytes([Buffer.from("ab"), Buffer.from("")]), 3);
    const tensor = region.tensor("BYTES", [2], 3);
    expect((tensor.elements as Uint8Array[]).map((bytes) => Buffer.from(bytes).toString())).toEqual([
      "ab",
      "",
    ]);
    expect(tensor.byteLength).toBe(10);
    region.write(Uint32Array.of(0xffff_ffff), 3);
    expect(() => region.tensor("BYTES", [1], 3)).toThrow("expected 1 BYTES elements, got fewer");
    expect(() => region.tensor("BYTES", [100])).toThrow("expected 100 BYTES elements, got fewer");
  });

  test("is reused when its key exists, unless only a new one is allowed", async () => {
    const region = await openRegion(16);
    region.write(Uint8Array.of(5));
    const again = await SharedMemoryRegion.create(region.key, 16);
    expect([...again.read(0, 1)]).toEqual([5]);
    const larger = await SharedMemoryRegion.create(region.key, 32);
    expect([...larger.read(0, 1)]).toEqual([5]);
    await expect(SharedMemoryRegion.create(region.key, 16, { createOnly: true })).rejects.toMatchObject({
      code: "ALREADY_EXISTS",
      message: `unable to create the shared memory region '${region.key}': it already exists`,
    });
    again.destroy();
    again.destroy();
    larger.destroy();
    expect(posix.open(region.key)).toBe(-1);
    expect(() => again.read()).toThrow(
      `cannot use the shared memory region '${region.key}': it has been destroyed`,
    );
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 53])("is rejected with %d bytes", async (byteSize) => {
    await expect(SharedMemoryRegion.create(uniqueKey(), byteSize)).rejects.toMatchObject({
      code: "INVALID_ARG",
    });
  });

  test("is rejected with an invalid key", async () => {
    await expect(SharedMemoryRegion.create("/a/b", 8)).rejects.toMatchObject({
      code: "INTERNAL",
      message: "unable to create the shared memory region '/a/b'",
    });
    await expect(SharedMemoryRegion.create("/a\0b", 8)).rejects.toMatchObject({ code: "INTERNAL" });
  });
});
