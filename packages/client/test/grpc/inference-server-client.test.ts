import type { ModelConfig } from "@tritonjs/core";
import { describe, expect, test } from "vitest";
import { FakeService } from "../../../grpc/test/support/fake-service.js";
import { overEachTransport } from "../../../grpc/test/support/over-each-transport.js";
import { InferenceServerClient } from "../../src/grpc/index.js";
import { openClient } from "./support/open-client.js";

overEachTransport("the client calls the server", () => {
  test("to ask for liveness and readiness", async () => {
    const service = new FakeService();
    const { client } = await openClient(service);
    expect(await client.isServerLive()).toBe(true);
    expect(await client.isServerReady()).toBe(true);
    expect(await client.isModelReady("m")).toBe(true);
    expect(await client.isModelReady("m", { modelVersion: 1 })).toBe(true);
    expect(await client.isModelReady("nosuch")).toBe(false);
    service.ready = false;
    expect(await client.isServerReady()).toBe(false);
  });

  test("to read metadata and configuration", async () => {
    const config: Partial<ModelConfig> = {
      maxBatchSize: 8,
      modelTransactionPolicy: { decoupled: true },
      input: [
        {
          name: "x",
          dataType: "TYPE_FP32",
          format: "FORMAT_NONE",
          dims: [-1, 2],
          isShapeTensor: false,
          allowRaggedBatch: false,
          optional: true,
          isNonLinearFormatIo: false,
        },
      ],
    };
    const service = new FakeService(config);
    const { client } = await openClient(service);
    expect(await client.getServerMetadata()).toEqual(service.serverMetadata());
    expect(await client.getModelMetadata("m", { modelVersion: "1" })).toEqual(service.modelMetadata("m", ""));
    expect(await client.getModelConfig("m")).toEqual(service.config);
    expect(await client.getInferenceStatistics("m")).toMatchObject(
      service.statistics("m").map(({ responseStats, ...report }) => report),
    );
    await expect(client.getModelMetadata("nosuch")).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: "Request for unknown model: 'nosuch' is not found",
    });
  });

  test("to list and control the repository", async () => {
    const { client } = await openClient(new FakeService());
    expect(await client.getModelRepositoryIndex()).toEqual([
      { name: "m", version: "1", state: "READY" },
      { name: "other" },
    ]);
    expect(await client.getModelRepositoryIndex({ ready: true })).toHaveLength(1);
    const refused = { code: "UNAVAILABLE", message: expect.stringContaining("explicit model load / unload") };
    const files = { "1/model.onnx": Uint8Array.of(1) };
    await expect(client.loadModel("m", { config: { max_batch_size: 8 }, files })).rejects.toMatchObject(
      refused,
    );
    await expect(client.unloadModel("m", { unloadDependents: true })).rejects.toMatchObject(refused);
  });

  test("to change settings and register shared memory", async () => {
    const { client } = await openClient(new FakeService());
    const noTrace = { code: "UNAVAILABLE", message: "the server does not support trace" };
    await expect(client.getTraceSettings()).rejects.toMatchObject(noTrace);
    const trace = { trace_level: ["TIMESTAMPS"], trace_rate: 1, trace_count: null };
    await expect(client.updateTraceSettings(trace, { modelName: "m" })).rejects.toMatchObject(noTrace);
    expect(await client.getLogSettings()).toMatchObject({ log_info: true, log_verbose_level: 0 });
    const log = { log_info: false, log_verbose_level: 1, log_format: "ISO8601" };
    expect(await client.updateLogSettings(log)).toMatchObject(log);
    expect(await client.getSystemSharedMemoryStatus()).toEqual([]);
    expect(await client.getCudaSharedMemoryStatus()).toEqual([]);
    const disabled = { code: "UNSUPPORTED" };
    await expect(client.registerSystemSharedMemory("r", { key: "/r", byteSize: 8 })).rejects.toMatchObject(
      disabled,
    );
    const cuda = { rawHandle: "AAAA", deviceId: 0, byteSize: 8 };
    await expect(client.registerCudaSharedMemory("r", cuda)).rejects.toMatchObject(disabled);
    await expect(client.unregisterSystemSharedMemory()).rejects.toMatchObject(disabled);
    await expect(client.unregisterCudaSharedMemory("r")).rejects.toMatchObject(disabled);
  });
});

describe("a server url", () => {
  test.each([
    "localhost",
    "localhost:8001",
    "grpc://h:1",
    "grpcs://h",
    "[::1]:8001",
    "unix:/tmp/x",
    "dns:///h:1",
  ])("may be %s", (url) => new InferenceServerClient(url).close());

  test.each(["", "http://localhost:8000", "grpc://", "a b", "grpc://user:secret@host:1"])(
    "may not be '%s'",
    (url) => expect(() => new InferenceServerClient(url)).toThrow(/invalid url/),
  );

  test("cannot be combined with TLS options when its connection is plain", () => {
    expect(() => new InferenceServerClient("grpc://h:1", { tls: true })).toThrow(/grpcs:/);
  });
});
