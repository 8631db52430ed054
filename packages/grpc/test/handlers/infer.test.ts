import { connect } from "node:http2";
import { type ServiceError, status } from "@grpc/grpc-js";
import { Tensor, TritonError } from "@tritonjs/core";
import { decodeBytes } from "@tritonjs/protocol";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import type { InferenceRequest } from "@tritonjs/testing";
import { expect, test } from "vitest";
import { FakeService, responseTo } from "../support/fake-service.js";
import { currentTransport, overEachTransport } from "../support/over-each-transport.js";
import { serve } from "../support/serve.js";

const int32 = (...values: number[]) => new Uint8Array(Int32Array.from(values).buffer);

overEachTransport("ModelInfer", () => {
  test("returns the raw contents of the outputs", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    const response = await client.infer({
      modelName: "m",
      id: "one",
      inputs: [{ name: "X", datatype: "INT32", shape: [2] }],
      rawInputContents: [int32(1, 2)],
    });
    expect(response).toMatchObject({
      modelName: "m",
      modelVersion: "1",
      id: "one",
      outputs: [{ name: "X", datatype: "INT32", shape: [2] }],
    });
    expect(response.rawOutputContents.map((raw) => Uint8Array.from(raw))).toEqual([int32(1, 2)]);
    expect(response.outputs[0]!.contents ?? null).toBeNull();
  });

  test("pairs raw contents with the inputs in order and ignores a surplus", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    await client.infer({
      modelName: "m",
      inputs: [
        { name: "B", datatype: "INT32", shape: [1] },
        { name: "A", datatype: "INT32", shape: [1] },
      ],
      rawInputContents: [int32(2), int32(1), int32(3)],
    });
    const inputs = service.requests[0]!.inputs;
    expect([...inputs.keys()]).toEqual(["B", "A"]);
    expect(inputs.get("B")!.elements).toEqual(Int32Array.of(2));
    expect(inputs.get("A")!.elements).toEqual(Int32Array.of(1));
  });

  test("passes raw contents on as views of one message", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    const bytes = new Uint8Array(600_000).fill(7);
    await client.infer({
      modelName: "m",
      inputs: [
        { name: "A", datatype: "UINT8", shape: [600_000] },
        { name: "B", datatype: "UINT8", shape: [600_000] },
      ],
      rawInputContents: [bytes, bytes],
    });
    const [a, b] = [...service.requests[0]!.inputs.values()].map((tensor) => tensor.bytes);
    expect(a!.buffer).toBe(b!.buffer);
    expect(a!.byteLength).toBe(600_000);
  });

  test("reads the elements of a large input without another copy", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    await client.infer({
      modelName: "m",
      inputs: [{ name: "X", datatype: "FP32", shape: [150_528] }],
      rawInputContents: [new Uint8Array(Float32Array.from({ length: 150_528 }, (_, index) => index).buffer)],
    });
    const tensor = service.requests[0]!.inputs.get("X")!;
    const elements = tensor.elements as Float32Array;
    expect(elements[150_527]).toBe(150_527);
    // grpc-js does not align messages.
    if (currentTransport() === "http2") expect(elements.buffer).toBe(tensor.bytes.buffer);
  });

  test("carries requests and responses larger than the default of grpc-js", async () => {
    const { client } = await serve(new FakeService());
    const bytes = new Uint8Array(5 * 1024 * 1024).fill(3);
    const { rawOutputContents } = await client.infer({
      modelName: "m",
      inputs: [{ name: "X", datatype: "UINT8", shape: [bytes.length] }],
      rawInputContents: [bytes],
    });
    expect(Buffer.compare(rawOutputContents[0]!, bytes)).toBe(0);
  });

  test("rejects a request above the configured size", async () => {
    const { client } = await serve(new FakeService(), { maxReceiveMessageSize: 1000 });
    const request = {
      modelName: "m",
      inputs: [{ name: "X", datatype: "UINT8", shape: [2000] }],
      rawInputContents: [new Uint8Array(2000)],
    };
    await expect(client.infer(request)).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    await expect(client.infer({ modelName: "m" })).resolves.toMatchObject({ modelName: "m" });
  });

  test("sends an empty entry for an output without bytes", async () => {
    const { client } = await serve(new FakeService());
    const { rawOutputContents, outputs } = await client.infer({
      modelName: "m",
      inputs: [
        { name: "E", datatype: "FP32", shape: [0] },
        { name: "X", datatype: "INT32", shape: [1] },
      ],
      rawInputContents: [new Uint8Array(0), int32(5)],
    });
    expect(outputs.map(({ name }) => name)).toEqual(["E", "X"]);
    expect(rawOutputContents.map((raw) => raw.byteLength)).toEqual([0, 4]);
  });

  test("returns code and text of an error", async () => {
    const service = new FakeService({}, (request) => {
      request.respondError(new TritonError("UNAVAILABLE", "schön 日本 100%\nzwei"));
    });
    const { client } = await serve(service);
    await expect(client.infer({ modelName: "m" })).rejects.toMatchObject({
      code: status.UNAVAILABLE,
      details: "schön 日本 100%\nzwei",
    });
  });

  test("returns an error without a text", async () => {
    const service = new FakeService(
      {},
      (request) => void request.respondError(new TritonError("INVALID_ARG", "")),
    );
    const { client } = await serve(service);
    await expect(client.infer({ modelName: "m" })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "",
    });
  });

  test("truncates an error text that no header can hold, and replaces lone surrogates", async () => {
    const service = new FakeService({}, (request) => {
      request.respondError(new TritonError("INTERNAL", `\ud800${"日".repeat(100_000)}`));
    });
    const { client } = await serve(service);
    const error = await client.infer({ modelName: "m" }).catch((caught) => caught);
    expect(error.code).toBe(status.INTERNAL);
    expect(error.details).toMatch(/^\ufffd日+\.\.\.$/);
  });

  test("rejects a decoupled model", async () => {
    const { client } = await serve(new FakeService({ modelTransactionPolicy: { decoupled: true } }));
    await expect(client.infer({ modelName: "m" })).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
      details: "ModelInfer RPC doesn't support models with decoupled transaction policy",
    });
  });

  test("requires exactly one response", async () => {
    const service = new FakeService({}, (request) => {
      const response = responseTo(request, new Map());
      if (request.id === "none") request.finish();
      else {
        request.respond(response, false);
        request.respond(response, true);
      }
    });
    const { client } = await serve(service);
    await expect(client.infer({ modelName: "m", id: "none" })).rejects.toMatchObject({
      code: status.INTERNAL,
      details: "expected a single response, got 0",
    });
    await expect(client.infer({ modelName: "m", id: "two" })).rejects.toMatchObject({
      code: status.INTERNAL,
      details: "expected a single response, got 2",
    });
  });

  test("turns an error thrown by the service into the status", async () => {
    const service = new FakeService({}, () => {
      throw new TritonError("INVALID_ARG", "unexpected inference input 'X' for model 'm'");
    });
    const { client } = await serve(service);
    await expect(client.infer({ modelName: "m" })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: "unexpected inference input 'X' for model 'm'",
    });
    await expect(client.infer({ modelName: "nosuch" })).rejects.toMatchObject({ code: status.NOT_FOUND });
  });

  test("sends response parameters by their type", async () => {
    const service = new FakeService({}, (request) => {
      const parameters = { i: 7, d: 2.5, s: "t", b: false, wide: 2n ** 62n };
      request.respond(
        responseTo(request, new Map([["Y", Tensor.fromElements("BYTES", [0], [])]]), parameters),
      );
    });
    const { client } = await serve(service);
    const { parameters } = await client.infer({ modelName: "m" });
    expect(parameters).toMatchObject({
      i: { int64Param: 7 },
      d: { doubleParam: 2.5 },
      s: { stringParam: "t" },
      b: { boolParam: false },
      wide: { int64Param: 2n ** 62n },
    });
  });
});

overEachTransport("classification", () => {
  const scores = new Uint8Array(Float32Array.of(0.25, 3.5, 2, 1).buffer);
  const request = {
    modelName: "m",
    inputs: [{ name: "X", datatype: "FP32", shape: [2, 2] }],
    outputs: [{ name: "X", parameters: { classification: { int64Param: 1 } } }],
    rawInputContents: [scores],
  };

  test("replaces an output row by row, with the labels that exist", async () => {
    const service = new FakeService({ maxBatchSize: 8 });
    service.labels = new Map([["X", ["cat"]]]);
    const { client } = await serve(service);
    const { outputs, rawOutputContents } = await client.infer(request);
    expect(outputs).toMatchObject([{ name: "X", datatype: "BYTES", shape: [2, 1] }]);
    expect(decodeBytes(rawOutputContents[0]!).map((text) => Buffer.from(text).toString())).toEqual([
      "3.500000:1",
      "2.000000:0:cat",
    ]);
  });
});

/** A service that never answers; `next()` returns the next request to arrive. */
function silentService() {
  const arrivals: InferenceRequest[] = [];
  let wake: (() => void) | undefined;
  const service = new FakeService({}, (request) => {
    arrivals.push(request);
    wake?.();
  });
  const next = async (): Promise<InferenceRequest> => {
    if (arrivals.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    return arrivals.shift()!;
  };
  return { service, next };
}

const aborted = (request: InferenceRequest) =>
  new Promise<void>((resolve) => {
    if (request.signal.aborted) resolve();
    else request.signal.addEventListener("abort", () => resolve());
  });

overEachTransport("a request is cancelled", () => {
  test("when its client cancels", async () => {
    const { service, next } = silentService();
    const { client } = await serve(service);
    let cancel = (): void => {};
    const call = client.infer(
      { modelName: "m" },
      { started: (started) => (cancel = () => started.cancel()) },
    );
    const rejected = expect(call).rejects.toMatchObject({ code: status.CANCELLED });
    const request = await next();
    cancel();
    await aborted(request);
    expect(request.settled).toBe(true);
    await rejected;
  });

  test("when its deadline passes", async () => {
    const { service, next } = silentService();
    const { client } = await serve(service);
    // On a busy machine the deadline may pass before the server has the request.
    while (service.requests.length === 0) {
      const call = client.infer({ modelName: "m" }, { options: { deadline: Date.now() + 100 } });
      await expect(call).rejects.toMatchObject({ code: status.DEADLINE_EXCEEDED });
    }
    await aborted(await next());
  });

  test("when its connection breaks", async () => {
    const { service, next } = silentService();
    const { address } = await serve(service);
    const session = connect(`http://${address.url}`);
    const stream = session.request({
      ":method": "POST",
      ":path": "/inference.GRPCInferenceService/ModelInfer",
      "content-type": "application/grpc",
      te: "trailers",
    });
    stream.on("error", () => {});
    const message = encodeMessage(inference.ModelInferRequest, { modelName: "m" });
    stream.end(Buffer.concat([Buffer.of(0, 0, 0, 0, message.length), message]));
    const request = await next();
    session.destroy();
    await aborted(request);
  });

  test("and the next request is served", async () => {
    let first = true;
    const service = new FakeService({}, (request) => {
      if (first) first = false;
      else request.respond(responseTo(request, request.inputs));
    });
    const { client } = await serve(service);
    // On a busy machine the deadline may pass before the server has the request.
    while (first) {
      await client.infer({ modelName: "m" }, { options: { deadline: Date.now() + 20 } }).catch(() => {});
    }
    await expect(client.infer({ modelName: "m" })).resolves.toMatchObject({ modelName: "m" });
  });
});

/** The error that a client gets for a request rejected with this retry time. */
async function refusal(retryAfterMs?: number): Promise<ServiceError> {
  const options = retryAfterMs === undefined ? {} : { retryAfterMs };
  const { client } = await serve(
    new FakeService({}, () => {
      throw new TritonError("UNAVAILABLE", "too late", options);
    }),
  );
  return client.infer({ modelName: "m" }).then(
    () => expect.fail("the request was answered"),
    (error: ServiceError) => error,
  );
}

overEachTransport("a rejected request", () => {
  test("tells the client when to retry", async () => {
    const { code, details, metadata } = await refusal(120);
    expect([code, details]).toEqual([status.UNAVAILABLE, "too late"]);
    expect(metadata.get("grpc-retry-pushback-ms")).toEqual(["120"]);
  });

  test("has no retry time when the server does not know one", async () => {
    const { code, metadata } = await refusal();
    expect(code).toBe(status.UNAVAILABLE);
    expect(metadata.get("grpc-retry-pushback-ms")).toEqual([]);
  });
});
