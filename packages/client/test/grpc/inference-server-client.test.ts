import { type ModelConfig, Tensor, TritonError } from "@tritonjs/core";
import { decodeMessage, encodeMessage, inference } from "@tritonjs/protocol/grpc";
import type { InferenceRequest } from "@tritonjs/testing";
import ndarray from "ndarray";
import { describe, expect, test } from "vitest";
import { FakeService, responseTo } from "../../../grpc/test/support/fake-service.js";
import { overEachTransport } from "../../../grpc/test/support/over-each-transport.js";
import {
  InferenceServerClient,
  type StreamInferRequest,
  type StreamInferResponse,
} from "../../src/grpc/index.js";
import { decodeInferResponse } from "../../src/grpc/infer-messages.js";
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

overEachTransport("client infer", () => {
  test("accepts arrays of every kind and returns ndarrays", async () => {
    const { client } = await openClient(new FakeService());
    const result = await client.infer("m", {
      id: "r",
      inputs: {
        nested: {
          datatype: "FP32",
          data: [
            [1, 2],
            [3, 4],
          ],
        },
        typed: Int32Array.of(-1, 5),
        shaped: { shape: [1, 2], data: Float64Array.of(0.5, Number.NaN) },
        array: ndarray(Uint8Array.of(1, 2, 3, 4), [2, 2]).transpose(1, 0),
        wide: BigInt64Array.of(2n ** 62n),
        text: ["ab", "", "ä"],
        flags: [true, false],
        half: Tensor.fromElements("FP16", [1], Uint16Array.of(0x3c00)),
        none: { datatype: "FP32", shape: [0, 2], data: new Float32Array(0) },
      },
    });
    expect(result).toMatchObject({ id: "r", modelName: "m", modelVersion: "1", parameters: {} });
    expect(Object.keys(result.outputs)).toHaveLength(9);
    expect(result.array("nested", "FP32").get(1, 0)).toBe(3);
    expect(result.elements("typed", "INT32")).toEqual(Int32Array.of(-1, 5));
    expect(result.array("shaped").shape).toEqual([1, 2]);
    expect([...result.elements("array", "UINT8")]).toEqual([1, 3, 2, 4]);
    expect(result.elements("wide", "INT64")[0]).toBe(2n ** 62n);
    expect(result.strings("text")).toEqual(["ab", "", "ä"]);
    expect([...result.elements("flags", "BOOL")]).toEqual([1, 0]);
    expect(result.tensor("half").datatype).toBe("FP16");
    expect(result.array("none").shape).toEqual([0, 2]);
    expect(() => result.tensor("typo")).toThrow(/has no output 'typo'/);
    expect(() => result.tensor("typed", "FP32")).toThrow("output 'typed': expected FP32, got INT32");
  });

  test("sends all options of a request", async () => {
    const service = new FakeService();
    const { client } = await openClient(service);
    await client.infer("m", {
      modelVersion: 1,
      id: "r",
      inputs: { x: Float32Array.of(3, 1, 2) },
      outputs: ["x", { name: "y", classes: 2 }],
      parameters: { text: "t", whole: 3, part: 0.5, yes: true, wide: 2n ** 60n },
      priority: 2,
      queueTimeoutMicroseconds: 5000,
      sequence: { id: "s", start: true },
    });
    expect(service.requests[0]).toMatchObject({
      id: "r",
      modelVersion: "1",
      requestedOutputs: ["x", "y"],
      parameters: { text: "t", whole: 3, part: 0.5, yes: true, wide: 2n ** 60n },
      priority: 2,
      queueTimeoutMicroseconds: 5000,
      correlationId: "s",
      sequenceStart: true,
      sequenceEnd: false,
    });
  });

  test("requests classes and compression", async () => {
    const { client } = await openClient(new FakeService(), {}, { maxReceiveMessageSize: 10_000 });
    const call = { inputs: { x: new Float32Array(100_000) }, outputs: [{ name: "x", classes: 1 }] };
    await expect(client.infer("m", call)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const small = { inputs: { x: Float32Array.of(3, 1, 2) }, outputs: [{ name: "x", classes: 2 }] };
    for (const requestCompression of ["gzip", "deflate"] as const) {
      const result = await client.infer("m", { ...small, requestCompression });
      expect(result.strings("x")).toEqual(["3.000000:0", "2.000000:2"]);
    }
  });

  test("transfers large tensors", async () => {
    const { client } = await openClient(new FakeService());
    const x = Float32Array.from({ length: 600_000 }, (_, i) => i);
    const result = await client.infer("m", { inputs: { x } });
    expect(Buffer.compare(Buffer.from(result.tensor("x").bytes), Buffer.from(x.buffer))).toBe(0);
  });

  test.each([
    [{ x: [1, 2] as number[] }, "input 'x' has no datatype"],
    [{ x: { datatype: "FP32", data: ["text"] } as const }, "input 'x' (FP32): expected a number, got string"],
    [
      { x: { shape: [3], data: Float32Array.of(1) } },
      "input 'x': expected elements for shape [3], got an array of 1",
    ],
  ])("rejects inputs that do not form a tensor before sending them", async (inputs, message) => {
    const service = new FakeService();
    const { client } = await openClient(service);
    await expect(client.infer("m", { inputs: inputs as never })).rejects.toMatchObject({
      code: "INVALID_ARG",
    });
    await expect(client.infer("m", { inputs: inputs as never })).rejects.toThrow(message);
    expect(service.requests).toEqual([]);
  });

  test("rejects reserved parameters", async () => {
    const { client } = await openClient(new FakeService());
    for (const name of ["timeout", "triton_final_response"]) {
      await expect(client.infer("m", { inputs: {}, parameters: { [name]: 1 } })).rejects.toMatchObject({
        code: "INVALID_ARG",
        message: `Parameter "${name}" is a reserved parameter and cannot be specified.`,
      });
    }
  });
});

describe("an inference response", () => {
  const decoded = (message: inference.ModelInferResponse.$Properties) =>
    decodeInferResponse(
      decodeMessage(inference.ModelInferResponse, encodeMessage(inference.ModelInferResponse, message)),
    );

  test("may have typed contents, as other servers send them", () => {
    const output = { name: "y", datatype: "INT64", shape: [2], contents: { int64Contents: [1, 2] } };
    expect([...decoded({ outputs: [output] }).elements("y", "INT64")]).toEqual([1n, 2n]);
  });

  test("omits outputs in shared memory", () => {
    const shared = {
      name: "y",
      datatype: "FP32",
      shape: [1],
      parameters: { shared_memory_region: { stringParam: "r" } },
    };
    const message = {
      outputs: [shared, { name: "z", datatype: "UINT8", shape: [1] }],
      rawOutputContents: [new Uint8Array(0), Uint8Array.of(7)],
    };
    expect(Object.keys(decoded(message).outputs)).toEqual(["z"]);
  });

  test.each([
    [{ datatype: "FP31", shape: [1] }, "expected a known datatype, got 'FP31'"],
    [{ datatype: "FP32", shape: [-1] }, "expected non-negative dimensions, got shape [-1]"],
    [{ datatype: "FP32", shape: [2] }, "got 4 bytes, which do not fill shape [2]"],
  ])("is rejected when it contradicts itself: %j", (output, message) => {
    const response = { outputs: [{ name: "y", ...output }], rawOutputContents: [new Uint8Array(4)] };
    expect(() => decoded(response)).toThrow(message);
  });

  test("keeps the parameters of the model", async () => {
    const service = new FakeService({}, (request) => {
      request.respond(responseTo(request, new Map(), { mood: "good", score: 0.5, count: 2, sure: true }));
    });
    const { client } = await openClient(service);
    const { parameters } = await client.infer("m", { inputs: {} });
    expect(parameters).toEqual({ mood: "good", score: 0.5, count: 2, sure: true });
  });
});

const request = (id: string, more: Partial<StreamInferRequest> = {}): StreamInferRequest => ({
  modelName: "m",
  id,
  inputs: { x: Int32Array.of(Number.parseInt(id, 36)) },
  ...more,
});

const decoupled = (onInfer: (request: InferenceRequest) => void) =>
  new FakeService({ modelTransactionPolicy: { decoupled: true } }, onInfer);

async function all(responses: AsyncIterable<StreamInferResponse>): Promise<StreamInferResponse[]> {
  const list: StreamInferResponse[] = [];
  for await (const response of responses) list.push(response);
  return list;
}

const row = (value: number) => new Map([["y", Tensor.fromElements("INT32", [1], Int32Array.of(value))]]);

overEachTransport("client streamInfer", () => {
  test("yields the responses to a list of requests", async () => {
    const { client } = await openClient(new FakeService());
    const responses = await all(client.streamInfer([request("a"), request("b")]));
    expect(responses.map(({ id, final }) => [id, final])).toEqual([
      ["a", true],
      ["b", true],
    ]);
    expect([...responses[1]!.result!.elements("x", "INT32")]).toEqual([11]);
    expect(await all(client.streamInfer([]))).toEqual([]);
  });

  test("sends further requests while responses are read", async () => {
    const { client } = await openClient(new FakeService());
    let answered = (): void => {};
    async function* requests() {
      for (const id of ["a", "b", "c"]) {
        const answer = new Promise<void>((resolve) => (answered = resolve));
        yield request(id);
        await answer;
      }
    }
    const ids: string[] = [];
    for await (const { id } of client.streamInfer(requests())) {
      ids.push(id);
      answered();
    }
    expect(ids).toEqual(["a", "b", "c"]);
  });

  test("reports errors as responses and continues", async () => {
    const service = new FakeService({}, (one) => {
      if (one.id === "bad") one.respondError(new TritonError("NOT_FOUND", "gone"));
      else one.respond(responseTo(one, new Map()));
    });
    const { client } = await openClient(service);
    const requests = [request("bad"), request("u", { modelName: "nosuch" }), request("good")];
    const [bad, unknown, good] = await all(client.streamInfer(requests));
    expect(bad).toMatchObject({ id: "bad", final: true, error: { code: "UNKNOWN", message: "gone" } });
    expect(unknown).toMatchObject({ id: "u", final: true, error: { message: /unknown model/ } });
    expect(good!.result!.id).toBe("good");
  });

  test("ends with the error of a model when endOnError is set", async () => {
    const service = new FakeService({}, (one) => one.respondError(new TritonError("NOT_FOUND", "gone")));
    const { client } = await openClient(service);
    const responses = client.streamInfer([request("bad")], { endOnError: true });
    await expect(all(responses)).rejects.toMatchObject({ code: "NOT_FOUND", message: "gone" });
  });

  test("yields many responses to one request, and the empty final response when requested", async () => {
    const service = decoupled((one) => {
      for (let i = 0; i < 3; i++) one.respond(responseTo(one, row(i)), false);
      one.finish();
    });
    const { client } = await openClient(service);
    const told = await all(client.streamInfer([request("a", { enableEmptyFinalResponse: true })]));
    expect(told.map(({ final, result }) => [final, result!.tensors.size])).toEqual([
      [false, 1],
      [false, 1],
      [false, 1],
      [true, 0],
    ]);
    expect(await all(client.streamInfer([request("a")]))).toHaveLength(3);
  });

  test("cancels its requests when the loop is left or its signal aborts", async () => {
    const service = decoupled((one) => void one.respond(responseTo(one, row(1)), false));
    const { client } = await openClient(service);
    for await (const _ of client.streamInfer([request("a")])) break;
    await expect.poll(() => service.requests[0]!.settled).toBe(true);
    const abort = new AbortController();
    const reading = (async () => {
      for await (const _ of client.streamInfer([request("b")], { signal: abort.signal })) abort.abort();
    })();
    await expect(reading).rejects.toMatchObject({ name: "AbortError", code: "CANCELLED" });
    await expect.poll(() => service.requests[1]!.settled).toBe(true);
    const aborted = client.streamInfer([request("c")], { signal: AbortSignal.abort() });
    await expect(all(aborted)).rejects.toMatchObject({ code: "CANCELLED" });
    expect(service.requests).toHaveLength(2);
  });

  test("ends when its timeout passes, and when its client closes", async () => {
    const service = decoupled(() => {});
    const { client } = await openClient(service);
    await expect(all(client.streamInfer([request("a")], { timeoutMs: 50 }))).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "the server did not answer within 50 ms",
    });
    const open = all(client.streamInfer([request("b")]));
    open.catch(() => {});
    await expect.poll(() => service.requests.some(({ id }) => id === "b")).toBe(true);
    client.close();
    await expect(open).rejects.toMatchObject({ code: "CANCELLED", message: "the client was closed" });
  });

  test("ends with the error of an invalid request or of the request iterator", async () => {
    const { client } = await openClient(new FakeService());
    const bad = { modelName: "m", inputs: { x: [1, 2] } };
    await expect(all(client.streamInfer([bad]))).rejects.toMatchObject({ code: "INVALID_ARG" });
    async function* broken() {
      yield request("a");
      throw new RangeError("no more");
    }
    await expect(all(client.streamInfer(broken()))).rejects.toThrow("no more");
  });

  test("reads requests no faster than the server does", async () => {
    const service = new FakeService({}, () => {});
    const { client } = await openClient(service);
    let made = 0;
    async function* endless() {
      const x = new Uint8Array(256 * 1024);
      for (; made < 10_000; made++) yield { modelName: "m", inputs: { x } };
    }
    const abort = new AbortController();
    const reading = all(client.streamInfer(endless(), { signal: abort.signal })).catch(() => {});
    // The client stays ahead of the server only by what the connection buffers.
    await expect.poll(() => service.requests.length).toBeGreaterThan(50);
    const ahead = made - service.requests.length;
    abort.abort();
    await reading;
    expect(ahead).toBeLessThan(100);
    expect(made).toBeLessThan(10_000);
  });
});
