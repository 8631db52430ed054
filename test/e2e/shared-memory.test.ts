import { onnxruntime } from "@tritonjs/backends/onnxruntime";
import { InferenceServerClient as GrpcClient } from "@tritonjs/client/grpc";
import { encodeBytes } from "@tritonjs/protocol";
import { describe, expect, onTestFinished, test } from "vitest";
import { flowers, irisModel } from "../support/iris.js";
import { HeldModel } from "./support/held-model.js";
import { openTriton, until } from "./support/open-triton.js";
import {
  connectOver,
  grpcUrl,
  openRegion,
  openShared,
  SOCKET_WAYS,
  sharedInput,
} from "./support/shared-regions.js";

describe.each(SOCKET_WAYS)("shared memory over %s", (way) => {
  test("inputs are read from regions and outputs are written into them", async () => {
    const client = await connectOver(openShared(), way);
    const input = await openRegion(client, "in", 32);
    const output = await openRegion(client, "out", 32);
    input.write(Float32Array.of(0, 1, 2, 3));
    const result = await client.infer("double", {
      inputs: sharedInput(12, 3, 4),
      outputs: [{ name: "y", sharedMemory: { region: "out", byteSize: 16, offset: 8 } }],
    });
    expect(result.tensors.size).toBe(0);
    const { datatype, shape } = result.sharedMemoryOutputs.get("y")!;
    expect({ datatype, shape }).toEqual({ datatype: "FP32", shape: [3] });
    expect(output.tensor(datatype, shape, 8).elements).toEqual(Float32Array.of(2, 4, 6));
    expect(output.read(20)).toEqual(new Uint8Array(12));
    const back = await client.infer("double", { inputs: sharedInput(4, 1, 8) });
    expect(back.elements("y", "FP32")).toEqual(Float32Array.of(4));
    expect(back.sharedMemoryOutputs.size).toBe(0);
    expect(await client.getSystemSharedMemoryStatus()).toMatchObject([{ name: "in" }, { name: "out" }]);
    expect(await client.getSystemSharedMemoryStatus("out")).toEqual([
      { name: "out", key: output.key, offset: 0, ...(way === "HTTP" ? { byte_size: 32 } : { byteSize: 32 }) },
    ]);
    await client.unregisterSystemSharedMemory("in");
    await client.unregisterSystemSharedMemory();
    expect(await client.getSystemSharedMemoryStatus()).toEqual([]);
  });

  test("strings have the wire format in regions", async () => {
    const client = await connectOver(openShared(), way);
    const region = await openRegion(client, "in", 64);
    const bytes = encodeBytes([Buffer.from("ab"), Buffer.from("")]);
    region.write(bytes);
    const inputs = (byteSize: number, count = 2) => ({
      x: { datatype: "BYTES" as const, shape: [count], sharedMemory: { region: "in", byteSize } },
    });
    const outputs = [{ name: "y", sharedMemory: { region: "in", byteSize: 24, offset: 32 } }];
    await client.infer("reverse", { inputs: inputs(bytes.length), outputs });
    const { elements } = region.tensor("BYTES", [2], 32);
    expect((elements as Uint8Array[]).map((element) => Buffer.from(element).toString())).toEqual(["", "ab"]);
    await expect(client.infer("reverse", { inputs: inputs(64) })).rejects.toThrow(
      "unexpected number of string elements 3",
    );
    await expect(client.infer("reverse", { inputs: inputs(3) })).rejects.toThrow(
      "incomplete string length indicator",
    );
    await expect(client.infer("reverse", { inputs: inputs(6) })).rejects.toThrow(
      "expected 2 string elements",
    );
    region.write(Uint32Array.of(0xffff_ffff));
    await expect(client.infer("reverse", { inputs: inputs(10) })).rejects.toThrow("incomplete string data");
  });

  test("a model in worker threads reads and writes regions", async () => {
    const triton = openTriton({ allowClientSharedMemory: true });
    const config = { maxBatchSize: 8 };
    triton.bind({ modelName: "iris", inferFunc: onnxruntime({ model: irisModel }), config });
    const client = await connectOver(triton, way);
    const { inputs, outputs } = await client.getModelMetadata("iris");
    const rows = Float32Array.from(flowers.slice(0, 2).flat());
    const [inputName, outputName] = [
      inputs![0]!.name!,
      outputs!.find(({ datatype }) => datatype === "FP32")!.name!,
    ];
    const input = await openRegion(client, "in", rows.byteLength);
    const output = await openRegion(client, "out", 256);
    input.write(rows);
    const sent = await client.infer("iris", {
      inputs: { [inputName]: { datatype: "FP32", shape: [2, 4], data: rows } },
    });
    const shared = await client.infer("iris", {
      inputs: {
        [inputName]: {
          datatype: "FP32",
          shape: [2, 4],
          sharedMemory: { region: "in", byteSize: rows.byteLength },
        },
      },
      outputs: [{ name: outputName, sharedMemory: { region: "out", byteSize: 256 } }],
    });
    const { datatype, shape } = shared.sharedMemoryOutputs.get(outputName)!;
    expect(output.tensor(datatype, shape).elements).toEqual(sent.elements(outputName));
    expect(input.tensor("FP32", [8]).elements).toEqual(rows);
  });

  test("a region unregistered during a request is released when the request ends", async () => {
    const triton = openTriton({ allowClientSharedMemory: true });
    const held = new HeldModel(triton, { batching: false });
    const client = await connectOver(triton, way);
    const region = await openRegion(client, "r", 8);
    region.write(Int32Array.of(21));
    const sharedMemory = { region: "r", byteSize: 4 };
    const answer = client.infer("held", {
      inputs: { x: { datatype: "INT32", shape: [1], sharedMemory } },
      outputs: [{ name: "y", sharedMemory: { ...sharedMemory, offset: 4 } }],
    });
    await held.reached(1);
    await client.unregisterSystemSharedMemory("r");
    expect(await client.getSystemSharedMemoryStatus("r")).toHaveLength(1);
    region.write(Int32Array.of(5));
    held.release();
    await answer;
    expect(region.tensor("INT32", [2]).elements).toEqual(Int32Array.of(5, 42));
    expect(await client.getSystemSharedMemoryStatus()).toEqual([]);
  });

  test("a cancelled request releases its regions", async () => {
    const triton = openTriton({ allowClientSharedMemory: true });
    const held = new HeldModel(triton, { batching: false });
    const client = await connectOver(triton, way);
    await openRegion(client, "r", 8);
    const leaves = new AbortController();
    const answer = client.infer("held", {
      inputs: { x: { datatype: "INT32", shape: [1], sharedMemory: { region: "r", byteSize: 4 } } },
      signal: leaves.signal,
    });
    await held.reached(1);
    await client.unregisterSystemSharedMemory();
    expect(await client.getSystemSharedMemoryStatus()).toHaveLength(1);
    leaves.abort();
    await expect(answer).rejects.toMatchObject({ code: "CANCELLED" });
    await until(async () => (await client.getSystemSharedMemoryStatus()).length === 0);
  });
});

describe.each(["http2", "grpc-js"] as const)("shared memory on a stream over %s", (transport) => {
  test("requests have inputs and outputs in regions, and release them", async () => {
    const triton = openShared();
    const client = new GrpcClient(await grpcUrl(triton, transport));
    onTestFinished(() => client.close());
    const region = await openRegion(client, "in", 64);
    region.write(Float32Array.of(1, 2));
    const outputs = [{ name: "y", sharedMemory: { region: "in", byteSize: 8, offset: 32 } }];
    const requests = [
      { modelName: "double", id: "good", inputs: sharedInput(8), outputs },
      { modelName: "double", id: "bad", inputs: sharedInput(100) },
      { modelName: "double", id: "small", inputs: sharedInput(12), outputs },
    ];
    const texts: (string | undefined)[] = [];
    for await (const { error } of client.streamInfer(requests)) texts.push(error?.message);
    expect(texts).toEqual([
      undefined,
      "Invalid offset + byte size for shared memory region: 'in'",
      expect.stringContaining("should be at least 12 bytes to hold the results"),
    ]);
    expect(region.tensor("FP32", [2], 32).elements).toEqual(Float32Array.of(2, 4));
    await client.unregisterSystemSharedMemory();
    expect(await client.getSystemSharedMemoryStatus()).toEqual([]);
  });
});

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
