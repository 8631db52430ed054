import { describe, expect, it } from "vitest";
import { InferenceServerClient, TritonError } from "../../src/http/index.js";
import { fakeFetch, json } from "./support/fake-fetch.js";
import { bindIdentity, serve } from "./support/serve.js";

type Call = (client: InferenceServerClient) => Promise<unknown>;

describe("each client call", () => {
  it.each<[string, string, Call, unknown?]>([
    ["GET", "v2/health/live", (c) => c.isServerLive()],
    ["GET", "v2/health/ready", (c) => c.isServerReady()],
    ["GET", "v2/models/m/ready", (c) => c.isModelReady("m")],
    ["GET", "v2/models/m/versions/3/ready", (c) => c.isModelReady("m", { modelVersion: 3 })],
    ["GET", "v2", (c) => c.getServerMetadata()],
    ["GET", "v2/models/a%2Fb%20c", (c) => c.getModelMetadata("a/b c")],
    ["GET", "v2/models/m/versions/1/config", (c) => c.getModelConfig("m", { modelVersion: "1" })],
    ["GET", "v2/models/stats", (c) => c.getInferenceStatistics()],
    ["GET", "v2/models/m/versions/1/stats", (c) => c.getInferenceStatistics("m", { modelVersion: 1 })],
    ["POST", "v2/repository/index", (c) => c.getModelRepositoryIndex(), {}],
    ["POST", "v2/repository/index", (c) => c.getModelRepositoryIndex({ ready: true }), { ready: true }],
    ["POST", "v2/repository/models/m/load", (c) => c.loadModel("m"), { parameters: {} }],
    [
      "POST",
      "v2/repository/models/m/load",
      (c) => c.loadModel("m", { config: { max_batch_size: 2 }, files: { "1/a": Uint8Array.of(0xfb, 0xff) } }),
      { parameters: { config: '{"max_batch_size":2}', "file:1/a": "+/8=" } },
    ],
    [
      "POST",
      "v2/repository/models/m/unload",
      (c) => c.unloadModel("m", { unloadDependents: true }),
      { parameters: { unload_dependents: true } },
    ],
    ["GET", "v2/trace/setting", (c) => c.getTraceSettings()],
    ["GET", "v2/models/m/trace/setting", (c) => c.getTraceSettings({ modelName: "m" })],
    [
      "POST",
      "v2/models/m/trace/setting",
      (c) => c.updateTraceSettings({ trace_level: ["TIMESTAMPS"], trace_rate: null }, { modelName: "m" }),
      { trace_level: ["TIMESTAMPS"], trace_rate: null },
    ],
    ["GET", "v2/logging", (c) => c.getLogSettings()],
    ["POST", "v2/logging", (c) => c.updateLogSettings({ log_verbose_level: 1 }), { log_verbose_level: 1 }],
    ["GET", "v2/systemsharedmemory/status", (c) => c.getSystemSharedMemoryStatus()],
    ["GET", "v2/systemsharedmemory/region/r/status", (c) => c.getSystemSharedMemoryStatus("r")],
    [
      "POST",
      "v2/systemsharedmemory/region/r/register",
      (c) => c.registerSystemSharedMemory("r", { key: "/k", byteSize: 8 }),
      { key: "/k", offset: 0, byte_size: 8 },
    ],
    ["POST", "v2/systemsharedmemory/unregister", (c) => c.unregisterSystemSharedMemory(), {}],
    ["GET", "v2/cudasharedmemory/region/r/status", (c) => c.getCudaSharedMemoryStatus("r")],
    [
      "POST",
      "v2/cudasharedmemory/region/r/register",
      (c) => c.registerCudaSharedMemory("r", { rawHandle: Uint8Array.of(1), deviceId: 0, byteSize: 8 }),
      { raw_handle: { b64: "AQ==" }, device_id: 0, byte_size: 8 },
    ],
    ["POST", "v2/cudasharedmemory/region/r/unregister", (c) => c.unregisterCudaSharedMemory("r"), {}],
    ["POST", "v2/models/m/generate", (c) => c.generate("m", { a: "b", n: 1n }), { a: "b", n: 1 }],
  ])("sends %s %s", async (method, path, call, body) => {
    const { fetch, sent } = fakeFetch(json({}));
    await call(new InferenceServerClient("host:8000", { fetch }));
    expect(sent).toHaveLength(1);
    expect([sent[0]!.method, sent[0]!.url]).toEqual([method, `http://host:8000/${path}`]);
    if (body !== undefined) expect(JSON.parse(sent[0]!.body)).toEqual(body);
  });

  it("sends headers, the access token and a query", async () => {
    const { fetch, sent } = fakeFetch(json({}));
    const headers = { "X-A": "client", "x-b": "client" };
    const client = new InferenceServerClient("host:1", { fetch, headers, accessToken: "secret" });
    await client.getServerMetadata({ headers: { "x-a": "call" }, query: { q: "a b" } });
    const [{ url, headers: got } = sent[0]!] = sent;
    expect(url).toBe("http://host:1/v2?q=a+b");
    expect(Object.fromEntries(got)).toMatchObject({
      "x-a": "call",
      "x-b": "client",
      "triton-access-token": "secret",
      "accept-encoding": "identity",
    });
  });

  it.each(["", ".", "..", "\ud800"])("rejects the model name %j", async (name) => {
    const { fetch, sent } = fakeFetch(json({}));
    const client = new InferenceServerClient("host:1", { fetch });
    expect(() => client.getModelMetadata(name)).toThrow(/invalid model name/);
    await expect(client.infer(name, { inputs: {} })).rejects.toMatchObject({ code: "INVALID_ARG" });
    expect(sent).toHaveLength(0);
  });

  it("rejects invalid headers", async () => {
    const client = new InferenceServerClient("host:1", { headers: { "x-a": "a\nb" } });
    await expect(client.getServerMetadata()).rejects.toMatchObject({ code: "INVALID_ARG" });
  });
});

describe("a server url", () => {
  it.each([
    ["localhost", "http://localhost:8000/"],
    ["localhost:80", "http://localhost/"],
    ["[::1]:8000", "http://[::1]:8000/"],
    ["http://localhost", "http://localhost/"],
    ["https://example.org/triton/", "https://example.org/triton/"],
  ])("may be %s", async (address, expected) => {
    const { fetch, sent } = fakeFetch(json({}));
    await new InferenceServerClient(address, { fetch }).getServerMetadata();
    expect(sent[0]!.url).toBe(`${expected}v2`);
  });

  it.each(["grpc://localhost:8001", "", "http://", "http://user:secret@localhost"])(
    "may not be %j",
    (address) => {
      let error: unknown;
      try {
        new InferenceServerClient(address);
      } catch (thrown) {
        error = thrown;
      }
      expect(TritonError.is(error) && error.code).toBe("INVALID_ARG");
      expect((error as Error).message).not.toContain("secret");
    },
  );
});

describe("a real server", () => {
  it("answers health, metadata and configuration calls", async () => {
    const client = new InferenceServerClient(await serve((triton) => bindIdentity(triton, "m", "FP32", [2])));
    expect(await client.isServerLive()).toBe(true);
    expect(await client.isServerReady()).toBe(true);
    expect(await client.isModelReady("m", { modelVersion: 1 })).toBe(true);
    expect(await client.isModelReady("none")).toBe(false);
    expect((await client.getServerMetadata()).name).toBe("triton");
    expect((await client.getModelMetadata("m")).inputs).toEqual([
      { name: "IN", datatype: "FP32", shape: [2] },
    ]);
    expect(await client.getModelConfig("m")).toMatchObject({ name: "m", max_batch_size: 0 });
    await client.infer("m", { inputs: { IN: Float32Array.of(1, 2) } });
    const { model_stats } = await client.getInferenceStatistics("m");
    expect(model_stats[0]).toMatchObject({ name: "m", version: "1", inference_count: 1 });
    expect(await client.getModelRepositoryIndex()).toMatchObject([
      { name: "m", version: "1", state: "READY" },
    ]);
    expect(await client.getLogSettings()).toHaveProperty("log_verbose_level");
  });

  it("requires its access token", async () => {
    const restrictions = { metadata: { header: "triton-access-token", value: "secret" } };
    const url = await serve((triton) => bindIdentity(triton, "m", "FP32", [2]), { restrictions } as object);
    await expect(new InferenceServerClient(url).getServerMetadata()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "This API is restricted, expecting header 'triton-access-token'",
    });
    const allowed = new InferenceServerClient(url, { accessToken: "secret" });
    expect(await allowed.getServerMetadata()).toMatchObject({ name: "triton" });
  });
});
