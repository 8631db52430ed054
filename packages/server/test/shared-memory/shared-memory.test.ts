import { randomUUID } from "node:crypto";
import { closeSync, ftruncateSync } from "node:fs";
import { encodeBytes, Tensor } from "@tritonjs/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { Exchange } from "../../src/service/exchange.js";
import type { FoundModel } from "../../src/service/inference-service.js";
import { SharedMemoryRegion } from "../../src/shared-memory/index.js";
import { SharedMemory } from "../../src/shared-memory/shared-memory.js";
import {
  bindPosix,
  DescriptorObject,
  loadPosix,
  MappedObject,
  type Posix,
  type SharedObject,
} from "../../src/shared-memory/shared-object.js";

/** macOS allows the size of an object to be set only once. */
const cannotShrink = process.platform === "darwin";

/** A unique key, short enough for macOS. */
function uniqueKey(): string {
  return `/tritonjs-${randomUUID().slice(0, 13)}`;
}

/** A shared memory object that is destroyed at the end of the test. */
async function openRegion(byteSize: number): Promise<SharedMemoryRegion> {
  const region = await SharedMemoryRegion.create(uniqueKey(), byteSize);
  onTestFinished(() => region.destroy());
  return region;
}

/** Enabled client shared memory, closed at the end of the test. */
function openMemory(): SharedMemory {
  const memory = new SharedMemory(true);
  onTestFinished(() => memory.close());
  return memory;
}

/** The exchange of a request that may name regions. */
function exchangeOver(sharedMemory: SharedMemory): Exchange {
  const service = { sharedMemory, assertOpen() {}, model: () => model };
  const model = { config: {} } as FoundModel;
  return new Exchange(service, undefined, model);
}

const MAX_UINT64 = 2n ** 64n - 1n;

describe("registering a shared memory region", () => {
  test("lists it until it is unregistered", async () => {
    const memory = openMemory();
    const { key } = await openRegion(64);
    await memory.registerSystem("b", { key, offset: 0, byteSize: 64 });
    await memory.registerSystem("a", { key, offset: 0n, byteSize: 16n });
    const a = { name: "a", key, offset: 0, byteSize: 16 };
    const b = { name: "b", key, offset: 0, byteSize: 64 };
    expect(memory.systemStatus("")).toEqual([a, b]);
    expect(memory.systemStatus("b")).toEqual([b]);
    await expect(memory.registerSystem("a", { key, offset: 0, byteSize: 4 })).rejects.toMatchObject({
      code: "ALREADY_EXISTS",
      message: "shared memory region 'a' already in manager",
    });
    memory.unregisterSystem("a");
    memory.unregisterSystem("a");
    expect(memory.systemStatus("")).toEqual([b]);
    memory.unregisterSystem("");
    expect(memory.systemStatus("")).toEqual([]);
    expect(() => memory.systemStatus("b")).toThrow("Unable to find system shared memory region: 'b'");
  });

  test.each<[string, number | bigint, number | bigint, string]>([
    ["larger than its object", 0, 65, "invalid args"],
    ["that ends behind its object", 1, 64, "invalid args"],
    ["that begins behind its object", 65, 0, "invalid args"],
    ["of 2^64 - 1 bytes", 0, MAX_UINT64, "invalid args"],
    ["whose end overflows", MAX_UINT64, 1, "unable to process address spaceInvalid argument"],
    ["whose end overflows by far", MAX_UINT64, MAX_UINT64, "unable to process address spaceInvalid argument"],
    ["of no bytes", 0, 0, "unable to process address spaceInvalid argument"],
    ["that begins inside a page", 16, 16, "unable to process address spaceInvalid argument"],
  ])("rejects a region %s", async (_what, offset, byteSize, reason) => {
    const memory = openMemory();
    const { key } = await openRegion(64);
    await expect(memory.registerSystem("r", { key, offset, byteSize })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message: `failed to register shared memory region 'r': ${reason}`,
    });
    expect(memory.systemStatus("")).toEqual([]);
  });

  test.each([
    "",
    "/",
    "///",
    "/a/b",
    "/../etc/passwd",
    "..",
    "/.",
    "/no\0thing",
    `/${"x".repeat(5000)}`,
    "/tritonjs-no-such-object",
  ])("rejects an object that cannot be opened, %j", async (key) => {
    await expect(openMemory().registerSystem("r", { key, offset: 0, byteSize: 1 })).rejects.toMatchObject({
      code: "INTERNAL",
      message: `Unable to open shared memory region: '${key}'`,
    });
  });

  test.each(["", "/", "///"])("rejects a reserved key behind %j", async (slashes) => {
    const key = `${slashes}triton_python_backend_shm_region_1`;
    await expect(openMemory().registerSystem("r", { key, offset: 0, byteSize: 1 })).rejects.toMatchObject({
      code: "INVALID_ARG",
      message:
        `cannot register shared memory region 'r' with key '${key}' as the key contains the reserved prefix ` +
        "'triton_python_backend_shm_region_'",
    });
  });

  test("accepts an offset of one page", async () => {
    const memory = openMemory();
    const { pageSize } = await loadPosix();
    const object = await openRegion(pageSize + 8);
    object.write(Uint8Array.of(1, 2, 3, 4), pageSize);
    await memory.registerSystem("r", { key: object.key, offset: pageSize, byteSize: 8 });
    const regions = exchangeOver(memory);
    const range = regions.hold({ region: "r", offset: 1, byteSize: 2 });
    expect([...range.read()]).toEqual([2, 3]);
    range.put("y", Uint8Array.of(9));
    expect([...object.read(pageSize, 4)]).toEqual([1, 9, 3, 4]);
    regions.release();
  });
});

const gpuRegion = { rawHandle: new Uint8Array(64), deviceId: 0, byteSize: 16 };

describe("client shared memory", () => {
  test("has no regions and rejects new ones when it is disabled", async () => {
    const memory = new SharedMemory(false);
    const disabled =
      "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.";
    expect(memory.systemStatus("")).toEqual([]);
    await expect(memory.registerSystem("r", { key: "/k", offset: 0, byteSize: 1 })).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: disabled,
    });
    expect(() => memory.unregisterSystem("r")).toThrow(disabled);
    expect(() => memory.registerCuda("r", gpuRegion)).toThrow(disabled);
    expect(() => memory.unregisterCuda("")).toThrow(disabled);
  });

  test("answers CUDA calls like a server without GPUs", async () => {
    const memory = openMemory();
    const { key } = await openRegion(8);
    await memory.registerSystem("r", { key, offset: 0, byteSize: 8 });
    expect(memory.cudaStatus("")).toEqual([]);
    expect(() => memory.cudaStatus("r")).toThrow(
      "The region named 'r' is registered as system shared memory, not CUDA shared memory",
    );
    expect(() => memory.cudaStatus("s")).toThrow("Unable to find cuda shared memory region: 's'");
    expect(() => memory.registerCuda("s", gpuRegion)).toThrow(
      "failed to register CUDA shared memory region: 's', GPUs not supported",
    );
    memory.unregisterCuda("r");
    memory.unregisterCuda("");
    expect(memory.systemStatus("r")).toHaveLength(1);
  });

  test("limits the number of regions", async () => {
    const memory = new SharedMemory(true, undefined, loadPosix, 10);
    onTestFinished(() => memory.close());
    const { key } = await openRegion(8);
    for (let i = 0; i < 10; i++) await memory.registerSystem(`r${i}`, { key, offset: 0, byteSize: 8 });
    await expect(memory.registerSystem("r", { key, offset: 0, byteSize: 8 })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "cannot register shared memory region 'r': expected at most 10 regions; unregister one first",
    });
    memory.unregisterSystem("r7");
    await memory.registerSystem("r", { key, offset: 0, byteSize: 8 });
  });

  test("reports a missing koffi package, and that Windows is not supported", async () => {
    const missing = async (): Promise<never> => {
      throw new Error("Cannot find package 'koffi'");
    };
    const memory = new SharedMemory(true, undefined, () => bindPosix(missing, "linux"));
    await expect(memory.registerSystem("r", { key: "/k", offset: 0, byteSize: 1 })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "cannot load the package 'koffi', which shared memory needs: npm install koffi",
    });
    await expect(bindPosix(missing, "win32")).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: "Shared memory feature is currently not supported on Windows",
    });
  });
});

async function resize(key: string, byteSize: number): Promise<void> {
  const posix = await loadPosix();
  const descriptor = posix.open(key);
  ftruncateSync(descriptor, byteSize);
  closeSync(descriptor);
}

describe("the memory range of a request", () => {
  test.each<[number | bigint, number | bigint, string]>([
    [64, 1, "Invalid offset for shared memory region: 'r'"],
    [-4, 64, "Invalid offset for shared memory region: 'r'"],
    [MAX_UINT64, 1, "Invalid offset for shared memory region: 'r'"],
    [0, 65, "Invalid offset + byte size for shared memory region: 'r'"],
    [63, 2, "Invalid offset + byte size for shared memory region: 'r'"],
    [0, -64, "Invalid offset + byte size for shared memory region: 'r'"],
    [0, 0, "Invalid offset + byte size for shared memory region: 'r'"],
    [
      32,
      2n ** 64n - 32n,
      "Integer overflow detected: byte_size (18446744073709551584) + offset (32) exceeds maximum value " +
        "(18446744073709551615) for region 'r'",
    ],
  ])("is rejected at %d of %d bytes", async (offset, byteSize, message) => {
    const memory = openMemory();
    const { key } = await openRegion(64);
    await memory.registerSystem("r", { key, offset: 0, byteSize: 64 });
    const regions = exchangeOver(memory);
    expect(() => regions.hold({ region: "r", offset, byteSize })).toThrow(message);
    expect(() => regions.hold({ region: "s", offset, byteSize })).toThrow(
      "Unable to find shared memory region: 's'",
    );
  });

  test("keeps its region open until the last request is done", async () => {
    const memory = openMemory();
    const object = await openRegion(64);
    await memory.registerSystem("r", { key: object.key, offset: 0, byteSize: 64 });
    const first = exchangeOver(memory);
    const second = exchangeOver(memory);
    const range = first.hold({ region: "r", offset: 0, byteSize: 4 });
    first.hold({ region: "r", offset: 4, byteSize: 4 });
    second.hold({ region: "r", offset: 0, byteSize: 4 });
    memory.unregisterSystem("r");
    expect(memory.systemStatus("")).toHaveLength(1);
    range.put("y", Uint8Array.of(7));
    first.release();
    first.release();
    expect(memory.systemStatus("")).toHaveLength(1);
    second.release();
    expect(memory.systemStatus("")).toEqual([]);
    expect(object.read(0, 1)).toEqual(Uint8Array.of(7));
  });

  test("survives the removal of the object's name and later writes of the client", async () => {
    const memory = openMemory();
    const object = await openRegion(8);
    object.write(Uint8Array.of(1, 2, 3, 4));
    await memory.registerSystem("r", { key: object.key, offset: 0, byteSize: 8 });
    const regions = exchangeOver(memory);
    const bytes = regions.hold({ region: "r", offset: 0, byteSize: 4 }).read();
    object.write(Uint8Array.of(9, 9, 9, 9));
    expect([...bytes]).toEqual([1, 2, 3, 4]);
    object.destroy();
    expect([...regions.hold({ region: "r", offset: 0, byteSize: 1 }).read()]).toEqual([9]);
    regions.release();
  });

  test.skipIf(cannotShrink)("fails when the client has shrunk the object", async () => {
    const memory = openMemory();
    const object = await openRegion(8192);
    await memory.registerSystem("r", { key: object.key, offset: 0, byteSize: 8192 });
    const regions = exchangeOver(memory);
    const range = regions.hold({ region: "r", offset: 4096, byteSize: 4096 });
    await resize(object.key, 100);
    const gone = "Invalid offset + byte size for shared memory region: 'r'";
    expect(() => range.read()).toThrow(gone);
    expect(() => range.put("y", new Uint8Array(8))).toThrow(gone);
    expect([...regions.hold({ region: "r", offset: 0, byteSize: 2 }).read()]).toEqual([0, 0]);
    regions.release();
  });

  test("rejects an output that is larger", async () => {
    const memory = openMemory();
    const { key } = await openRegion(64);
    await memory.registerSystem("r", { key, offset: 0, byteSize: 64 });
    const regions = exchangeOver(memory);
    const range = regions.hold({ region: "r", offset: 0, byteSize: 4 });
    expect(() => range.put("y", new Uint8Array(5))).toThrow(
      "shared memory size specified with the request for output 'y' (4 bytes) should be at least 5 bytes to hold " +
        "the results",
    );
    regions.release();
  });
});

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
