import { Metadata, status } from "@grpc/grpc-js";
import { decodeMessage, encodeMessage, grpc, inference } from "@tritonjs/protocol/grpc";
import { describe, expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { serve } from "../support/serve.js";

overEachTransport("health calls", () => {
  test("report liveness and readiness of the server and its models", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    const live = () => client.ask("ServerLive", {});
    const ready = () => client.ask("ServerReady", {});
    const modelReady = (name: string, version = "") => client.ask("ModelReady", { name, version });
    expect(await live()).toMatchObject({ live: true });
    expect(await ready()).toMatchObject({ ready: true });
    expect(await modelReady("m")).toMatchObject({ ready: true });
    expect(await modelReady("m", "9")).toMatchObject({ ready: false });
    service.ready = false;
    expect(await ready()).toMatchObject({ ready: false });
  });

  test("follow the health checking protocol for any service name", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    const { HealthCheckRequest, HealthCheckResponse } = grpc.health.v1;
    const check = (name: string) =>
      client.call("/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse, { service: name });
    expect((await check("")).status).toBe(HealthCheckResponse.ServingStatus.SERVING);
    expect((await check("nosuch")).status).toBe(HealthCheckResponse.ServingStatus.SERVING);
    service.ready = false;
    expect((await check("")).status).toBe(HealthCheckResponse.ServingStatus.NOT_SERVING);
  });
});

overEachTransport("metadata calls", () => {
  test("describe the server", async () => {
    const { client } = await serve(new FakeService());
    expect(await client.ask("ServerMetadata", {})).toMatchObject({
      name: "triton",
      version: "1.2.3",
      extensions: ["classification", "sequence"],
    });
  });

  test("describe a model", async () => {
    const { client } = await serve(new FakeService());
    const metadata = (name: string) => client.ask("ModelMetadata", { name });
    expect(await metadata("m")).toMatchObject({
      name: "m",
      versions: ["1"],
      platform: "javascript",
      inputs: [{ name: "X", datatype: "INT32", shape: [-1, 2] }],
      outputs: [{ name: "Y", datatype: "BYTES", shape: [-1] }],
    });
    await expect(metadata("nosuch")).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: "Request for unknown model: 'nosuch' is not found",
    });
  });

  test("return the configuration with its enums, maps and wide integers", async () => {
    const { client } = await serve(
      new FakeService({
        maxBatchSize: 8,
        input: [
          {
            name: "X",
            dataType: "TYPE_STRING",
            format: "FORMAT_NHWC",
            dims: [-1, 3],
            isShapeTensor: false,
            allowRaggedBatch: false,
            optional: true,
            isNonLinearFormatIo: false,
          },
        ],
        instanceGroup: [
          {
            name: "m_0",
            kind: "KIND_CPU",
            count: 2,
            gpus: [],
            secondaryDevices: [],
            profile: [],
            passive: false,
            hostPolicy: "",
          },
        ],
        dynamicBatching: {
          preferredBatchSize: [4, 8],
          maxQueueDelayMicroseconds: 500,
          preserveOrdering: false,
          priorityLevels: 2,
          defaultPriorityLevel: 1,
          priorityQueuePolicy: {
            "2": {
              timeoutAction: "DELAY",
              defaultTimeoutMicroseconds: 2 ** 40,
              allowTimeoutOverride: true,
              maxQueueSize: 3,
            },
          },
        },
        parameters: { kind: { stringValue: "KIND_CPU" } },
        metricTags: { priority: "PRIORITY_MAX" },
      }),
    );
    const { config } = await client.ask("ModelConfig", { name: "m" });
    expect(config).toMatchObject({
      name: "m",
      backend: "javascript",
      maxBatchSize: 8,
      versionPolicy: { latest: { numVersions: 1 } },
      input: [
        {
          dataType: inference.DataType.TYPE_STRING,
          format: inference.ModelInput.Format.FORMAT_NHWC,
          dims: [-1, 3],
          optional: true,
        },
      ],
      instanceGroup: [{ name: "m_0", kind: inference.ModelInstanceGroup.Kind.KIND_CPU, count: 2 }],
      dynamicBatching: {
        preferredBatchSize: [4, 8],
        maxQueueDelayMicroseconds: 500,
        priorityLevels: 2,
        priorityQueuePolicy: {
          "2": {
            timeoutAction: inference.ModelQueuePolicy.TimeoutAction.DELAY,
            defaultTimeoutMicroseconds: 2 ** 40,
            maxQueueSize: 3,
          },
        },
      },
      parameters: { kind: { stringValue: "KIND_CPU" } },
      metricTags: { priority: "PRIORITY_MAX" },
    });
  });
});

overEachTransport("statistics and repository calls", () => {
  test("return exact counts", async () => {
    const { client } = await serve(new FakeService());
    const { modelStats } = await client.ask("ModelStatistics", {});
    expect(modelStats).toMatchObject([
      {
        name: "m",
        version: "1",
        lastInference: 1_700_000_000_123,
        inferenceCount: 3,
        executionCount: 2,
        inferenceStats: { success: { count: 3, ns: 5_000_000_000_000 }, fail: {} },
        batchStats: [{ batchSize: 2, computeInfer: { count: 1, ns: 7 } }],
      },
    ]);
  });

  test("list the models, or only the ready ones", async () => {
    const { client } = await serve(new FakeService());
    const index = (request: inference.RepositoryIndexRequest.$Properties) =>
      client.ask("RepositoryIndex", request);
    expect((await index({})).models).toMatchObject([
      { name: "m", version: "1", state: "READY" },
      { name: "other", version: "", state: "", reason: "" },
    ]);
    expect((await index({ ready: true })).models).toHaveLength(1);
    await expect(index({ repositoryName: "x" })).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
      details: "'repository_name' specification is not supported",
    });
  });
});

const { HealthCheckRequest, HealthCheckResponse } = grpc.health.v1;

const { SERVING, NOT_SERVING } = HealthCheckResponse.ServingStatus;

overEachTransport("Health/Watch", () => {
  test("sends the state to a watcher, and each change", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    const watch = client.makeServerStreamRequest(
      "/grpc.health.v1.Health/Watch",
      (message: object) => encodeMessage(HealthCheckRequest, message),
      (bytes) => decodeMessage(HealthCheckResponse, bytes),
      {},
      new Metadata(),
    );
    watch.on("error", () => {});
    const states: number[] = [];
    for await (const { status } of watch) {
      states.push(status);
      service.ready = !service.ready;
      if (states.length === 3) break;
    }
    expect(states).toEqual([SERVING, NOT_SERVING, SERVING]);
  });
});

const notAllowed = {
  code: status.UNAVAILABLE,
  details: "explicit model load / unload is not allowed if polling is enabled",
};

describe("unavailable extensions", () => {
  test("trace settings are refused by a server without traces", async () => {
    const { client } = await serve(new FakeService());
    await expect(client.ask("TraceSetting", {})).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: "the server does not support trace",
    });
  });
});

describe("model control is refused", () => {
  test.each<[inference.RepositoryModelLoadRequest.$Properties, object]>([
    [{ modelName: "m" }, notAllowed],
    [
      {
        modelName: "m",
        parameters: { config: { stringParam: "{}" }, "file:1/m": { bytesParam: Buffer.of(1) } },
      },
      notAllowed,
    ],
    [
      { modelName: "m", repositoryName: "x" },
      { code: status.UNIMPLEMENTED, details: "'repository_name' specification is not supported" },
    ],
    [
      { modelName: "m", parameters: { foo: { stringParam: "x" } } },
      { code: status.INVALID_ARGUMENT, details: "unrecognized load parameter 'foo'." },
    ],
    [
      { modelName: "m", parameters: { config: { int64Param: 1 } } },
      {
        code: status.INVALID_ARGUMENT,
        details: "invalid value type for load parameter 'config', expected string_param.",
      },
    ],
    [
      { modelName: "m", parameters: { "file:1/m": { stringParam: "x" } } },
      {
        code: status.INVALID_ARGUMENT,
        details: "invalid value type for load parameter 'file:1/m', expected bytes_param.",
      },
    ],
  ])("for the load request %j", async (request, error) => {
    const { client } = await serve(new FakeService());
    await expect(client.ask("RepositoryModelLoad", request)).rejects.toMatchObject(error);
  });

  test.each<[inference.RepositoryModelUnloadRequest.$Properties, object]>([
    [{ modelName: "m", parameters: { unload_dependents: { boolParam: true } } }, notAllowed],
    [{ modelName: "m", repositoryName: "x" }, { code: status.UNIMPLEMENTED }],
    [
      { modelName: "m", parameters: { unload_dependents: { int64Param: 1 } } },
      {
        code: status.INVALID_ARGUMENT,
        details: "invalid value type for 'unload_dependents' parameter, expected bool_param.",
      },
    ],
  ])("for the unload request %j", async (request, error) => {
    const { client } = await serve(new FakeService());
    await expect(client.ask("RepositoryModelUnload", request)).rejects.toMatchObject(error);
  });
});

describe("shared memory calls of a server without shared memory", () => {
  const disabled = {
    code: status.UNIMPLEMENTED,
    details: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
  };

  test("list no regions and reject new ones", async () => {
    const { client } = await serve(new FakeService());
    const systemStatus = (name: string) => client.ask("SystemSharedMemoryStatus", { name });
    expect(await systemStatus("")).toMatchObject({ regions: {} });
    await expect(systemStatus("r")).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: "Unable to find system shared memory region: 'r'",
    });
    await expect(client.ask("CudaSharedMemoryStatus", { name: "r" })).rejects.toMatchObject({
      details: "Unable to find cuda shared memory region: 'r'",
    });
    await expect(
      client.ask("SystemSharedMemoryRegister", { name: "r", key: "/k", byteSize: 4 }),
    ).rejects.toMatchObject(disabled);
    await expect(client.ask("CudaSharedMemoryUnregister", {})).rejects.toMatchObject(disabled);
  });
});
