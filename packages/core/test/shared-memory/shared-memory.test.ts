import { describe, expect, onTestFinished, test } from "vitest";
import { SharedMemory } from "../../src/shared-memory/shared-memory.js";
import { bindPosix, loadPosix } from "../../src/shared-memory/shared-object.js";
import { exchangeOver, openMemory, openRegion } from "./open-memory.js";

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
    const memory = new SharedMemory(true, loadPosix, 10);
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
    const memory = new SharedMemory(true, () => bindPosix(missing, "linux"));
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
