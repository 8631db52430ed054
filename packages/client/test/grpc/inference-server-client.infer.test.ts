import { Tensor } from "@tritonjs/core";
import { decodeMessage, encodeMessage, inference } from "@tritonjs/protocol/grpc";
import ndarray from "ndarray";
import { describe, expect, test } from "vitest";
import { FakeService, responseTo } from "../../../grpc/test/support/fake-service.js";
import { overEachTransport } from "../../../grpc/test/support/over-each-transport.js";
import { decodeInferResponse } from "../../src/grpc/infer-messages.js";
import { openClient } from "./support/open-client.js";

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
