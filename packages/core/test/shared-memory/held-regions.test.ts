import { closeSync, ftruncateSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { loadPosix } from "../../src/shared-memory/shared-object.js";
import { cannotShrink, exchangeOver, openMemory, openRegion } from "./open-memory.js";

const MAX_UINT64 = 2n ** 64n - 1n;

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
