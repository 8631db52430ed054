import { describe, expect, test } from "vitest";
import { openTriton } from "./support/open-triton.js";
import { connectOver, openRegion, openShared, SOCKET_WAYS, sharedInput } from "./support/shared-regions.js";

describe.each(SOCKET_WAYS)("bad shared memory requests over %s", (way) => {
  test("bad ranges are rejected, hold no region, and the next good request works", async () => {
    const client = await connectOver(openShared(), way);
    const input = await openRegion(client, "in", 32);
    await openRegion(client, "out", 8);
    input.write(Float32Array.of(1, 2));
    const to = (region: string, byteSize: number, offset = 0) => [
      { name: "y", sharedMemory: { region, byteSize, offset } },
    ];
    const refused: [Parameters<typeof client.infer>[1], object][] = [
      [
        { inputs: sharedInput(8, 3) },
        { code: "INVALID_ARG", message: expect.stringContaining("Expected 12, got 8") },
      ],
      [{ inputs: sharedInput(36) }, { message: "Invalid offset + byte size for shared memory region: 'in'" }],
      [{ inputs: sharedInput(8, 2, 32) }, { message: "Invalid offset for shared memory region: 'in'" }],
      [
        { inputs: sharedInput(0, 1) },
        { message: "Invalid offset + byte size for shared memory region: 'in'" },
      ],
      [
        { inputs: sharedInput(8), outputs: to("no", 8) },
        { code: "NOT_FOUND", message: "Unable to find shared memory region: 'no'" },
      ],
      [
        { inputs: sharedInput(8), outputs: to("out", 8, 4) },
        { message: "Invalid offset + byte size for shared memory region: 'out'" },
      ],
      [
        { inputs: sharedInput(12), outputs: to("out", 8) },
        { code: "INTERNAL", message: expect.stringContaining("(8 bytes) should be at least 12 bytes") },
      ],
    ];
    for (const [call, error] of refused)
      await expect(client.infer("double", call)).rejects.toMatchObject(error);
    await client.infer("double", { inputs: sharedInput(8), outputs: to("out", 8) });
    await client.unregisterSystemSharedMemory();
    expect(await client.getSystemSharedMemoryStatus()).toEqual([]);
  });

  test("a region is rejected when its object is missing, its name is taken, or it is larger than its object", async () => {
    const client = await connectOver(openShared(), way);
    const { key } = await openRegion(client, "in", 32);
    const refused: [string, { key: string; byteSize: number; offset?: number }, object][] = [
      ["in", { key, byteSize: 32 }, { message: "shared memory region 'in' already in manager" }],
      ["r", { key, byteSize: 33 }, { message: "failed to register shared memory region 'r': invalid args" }],
      [
        "r",
        { key, byteSize: 8, offset: 32 },
        { message: "failed to register shared memory region 'r': invalid args" },
      ],
      [
        "r",
        { key: `${key}\0x`, byteSize: 8 },
        { message: `Unable to open shared memory region: '${key}\0x'` },
      ],
      [
        "r",
        { key: "", byteSize: 8 },
        { code: "INTERNAL", message: "Unable to open shared memory region: ''" },
      ],
      [
        "r",
        { key: "/../etc/passwd", byteSize: 8 },
        { message: "Unable to open shared memory region: '/../etc/passwd'" },
      ],
      ["r", { key: "/", byteSize: 8 }, { message: "Unable to open shared memory region: '/'" }],
    ];
    for (const [name, region, error] of refused) {
      await expect(client.registerSystemSharedMemory(name, region)).rejects.toMatchObject(error);
    }
    const odd = "../a b/ä?#%2f";
    await client.registerSystemSharedMemory(odd, { key, byteSize: 8 });
    expect(await client.getSystemSharedMemoryStatus(odd)).toHaveLength(1);
    await client.unregisterSystemSharedMemory(odd);
    await expect(client.getSystemSharedMemoryStatus(odd)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("calls about GPU regions are answered like a server without GPUs", async () => {
    const client = await connectOver(openShared(), way);
    await openRegion(client, "in", 32);
    await expect(
      client.registerCudaSharedMemory("c", { rawHandle: new Uint8Array(64), deviceId: 0, byteSize: 8 }),
    ).rejects.toThrow("failed to register CUDA shared memory region: 'c', GPUs not supported");
    expect(await client.getCudaSharedMemoryStatus()).toEqual([]);
    await expect(client.getCudaSharedMemoryStatus("in")).rejects.toThrow(
      "The region named 'in' is registered as system shared memory, not CUDA shared memory",
    );
    await client.unregisterCudaSharedMemory();
    expect(await client.getSystemSharedMemoryStatus()).toHaveLength(1);
  });

  test("the server lists the extension only when it is enabled", async () => {
    const client = await connectOver(openShared(), way);
    const { extensions } = await client.getServerMetadata();
    expect(extensions).toEqual(expect.arrayContaining(["system_shared_memory", "cuda_shared_memory"]));
    const without = await connectOver(openTriton(), way);
    const metadata = await without.getServerMetadata();
    expect(metadata.extensions?.filter((name) => name.includes("shared_memory"))).toEqual([]);
    await expect(without.registerSystemSharedMemory("r", { key: "/k", byteSize: 8 })).rejects.toMatchObject({
      code: "UNSUPPORTED",
    });
    await expect(without.unregisterSystemSharedMemory()).rejects.toMatchObject({ code: "UNSUPPORTED" });
    expect(await without.getSystemSharedMemoryStatus()).toEqual([]);
  });
});
