import { type ModelConfig, Tensor, TritonError } from "@tritonjs/core";
import type { InferenceRequest } from "@tritonjs/testing";
import { expect, onTestFinished, test } from "vitest";
import { FakeService, responseTo } from "../../../grpc/test/support/fake-service.js";
import { overEachTransport } from "../../../grpc/test/support/over-each-transport.js";
import { serve } from "../../../grpc/test/support/serve.js";
import {
  DecoupledModelClient,
  InferenceServerClient,
  ModelClient,
  type ModelClientOptions,
} from "../../src/grpc/index.js";

const input = (name: string, optional = false): ModelConfig["input"][number] => ({
  name,
  dataType: "TYPE_FP32",
  format: "FORMAT_NONE",
  dims: [2],
  isShapeTensor: false,
  allowRaggedBatch: false,
  optional,
  isNonLinearFormatIo: false,
});

const batching: Partial<ModelConfig> = { maxBatchSize: 8, input: [input("x"), input("bias", true)] };
const streaming = { ...batching, modelTransactionPolicy: { decoupled: true } };

type Options = ModelClientOptions;

async function modelClient(service: FakeService, options?: Options) {
  const { address } = await serve(service);
  const client = new ModelClient(address.url, "m", options);
  onTestFinished(() => client.close());
  return client;
}

async function decoupledClient(service: FakeService, options?: Options) {
  const { address } = await serve(service);
  const client = new DecoupledModelClient(address.url, "m", options);
  onTestFinished(() => client.close());
  return client;
}

overEachTransport("ModelClient", () => {
  test("adds the batch axis to a sample and removes it from the results", async () => {
    const client = await modelClient(new FakeService(batching));
    const { x } = await client.inferSample({ x: [1, 2] });
    expect(x!.shape).toEqual([2]);
    const batch = await client.inferBatch({
      x: [
        [1, 2],
        [3, 4],
      ],
      bias: [
        [0, 0],
        [0, 0],
      ],
    }); // rows
    expect(batch.x!.shape).toEqual([2, 2]);
    expect(await client.isBatchingSupported()).toBe(true);
  });

  test("sends only samples to a model without a batch axis", async () => {
    const client = await modelClient(new FakeService({ ...batching, maxBatchSize: 0 }));
    expect((await client.inferSample({ x: [1, 2] })).x!.shape).toEqual([2]);
    await expect(client.inferBatch({ x: [[1, 2]] })).rejects.toMatchObject({ code: "INVALID_ARG" });
    expect(await client.isBatchingSupported()).toBe(false);
  });

  test("rejects inputs that do not match before sending them", async () => {
    const service = new FakeService(batching);
    const client = await modelClient(service);
    await expect(client.inferSample({})).rejects.toThrow("model 'm': missing input 'x'");
    await expect(client.inferSample({ x: [1, 2], z: [1] })).rejects.toThrow("model 'm' has no input 'z'");
    await expect(client.inferSample({ x: [1, 2, 3] })).rejects.toThrow(
      /expected shape \[2\] of one sample, got \[3\]/,
    );
    expect(service.requests).toEqual([]);
  });

  test("reads the configuration once, waits for the model, and stops at its init timeout", async () => {
    const service = new FakeService(batching);
    let asked = 0;
    let readyAfter = Number.POSITIVE_INFINITY;
    service.isModelReady = () => ++asked > readyAfter;
    const impatient = await modelClient(service, { initTimeoutMs: 60 });
    await expect(impatient.waitForModel()).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "model 'm' was not ready within 60 ms",
    });
    await expect(impatient.inferSample({ x: [1, 2] })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const client = await modelClient(service);
    await client.waitForServer();
    readyAfter = asked + 2;
    await expect(client.inferSample({ x: [1, 2] })).resolves.toBeDefined();
    service.config = { ...service.config, maxBatchSize: 0 };
    expect((await client.modelConfig()).maxBatchSize).toBe(8);
    await expect(client.waitForModel({ signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: "CANCELLED",
    });
  });

  test("limits the time of inferences, and ends them on abort and close", async () => {
    const service = new FakeService(batching, () => {});
    const client = await modelClient(service, { inferenceTimeoutMs: 50, lazyInit: false });
    await expect(client.inferSample({ x: [1, 2] })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const aborted = client.inferSample({ x: [1, 2] }, { signal: AbortSignal.abort() });
    await expect(aborted).rejects.toMatchObject({ code: "CANCELLED" });
    await client.close();
    await expect(client.inferSample({ x: [1, 2] })).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "the client is closed",
    });
  });

  test("names the matching client class for the other kind of model", async () => {
    const wrong = await modelClient(new FakeService(streaming));
    await expect(wrong.inferSample({ x: [1, 2] })).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: "model 'm' is decoupled, so it has no single response: use DecoupledModelClient instead",
    });
    const other = await decoupledClient(new FakeService(batching));
    await expect(other.inferSample({ x: [1, 2] }).next()).rejects.toMatchObject({
      code: "UNSUPPORTED",
      message: "model 'm' is not decoupled, so it has a single response: use ModelClient",
    });
  });

  test("answers calls in flight when it is closed", async () => {
    const requests: InferenceRequest[] = [];
    const client = await modelClient(new FakeService(batching, (request) => void requests.push(request)));
    const answer = client.inferSample({ x: [1, 2] });
    await expect.poll(() => requests.length).toBe(1);
    const closed = client.close();
    requests[0]!.respond(responseTo(requests[0]!, requests[0]!.inputs));
    await expect(answer).resolves.toBeDefined();
    await closed;
  });

  test("limits the number of calls in flight and of waiting calls", async () => {
    const service = new FakeService(batching, () => {});
    const client = await modelClient(service, { maxConcurrency: 2, maxQueueSize: 1 });
    await client.modelConfig();
    const calls = [1, 2, 3, 4].map((value) => client.inferSample({ x: [value, 0] }));
    await expect(calls[3]).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: "too many requests of this client (2 run, 1 wait): send fewer at a time, or raise its limits",
    });
    const answer = (index: number) => {
      const request = service.requests[index]!;
      request.respond(responseTo(request, request.inputs));
    };
    await expect.poll(() => service.requests.length).toBe(2);
    answer(0);
    await calls[0];
    await expect.poll(() => service.requests.length).toBe(3);
    answer(1);
    answer(2);
    await Promise.all(calls.slice(0, 3));
  });

  test("does not close a client that it was given", async () => {
    const { address } = await serve(new FakeService(batching));
    const server = new InferenceServerClient(address.url);
    onTestFinished(() => server.close());
    await new ModelClient(server, "m").close();
    expect(await server.isServerLive()).toBe(true);
  });

  test("passes load and unload on", async () => {
    const client = await modelClient(new FakeService(batching));
    await expect(client.loadModel({ config: {} })).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect(client.unloadModel()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

overEachTransport("DecoupledModelClient", () => {
  const counting = new FakeService(streaming, (request) => {
    for (let i = 0; i < 3; i++) {
      const y = Tensor.fromElements("INT32", [1, 1], Int32Array.of(i));
      request.respond(responseTo(request, new Map([["y", y]])), false);
    }
    request.finish();
  });

  test("yields each response as it arrives", async () => {
    const client = await decoupledClient(counting);
    const samples: unknown[] = [];
    for await (const { y } of client.inferSample({ x: [1, 2] })) samples.push([y!.shape, y!.get(0)]);
    expect(samples).toEqual([0, 1, 2].map((value) => [[1], value]));
    const batches: unknown[] = [];
    for await (const { y } of client.inferBatch({ x: [[1, 2]] })) batches.push(y!.shape);
    expect(batches).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
    ]);
  });

  test("throws the error of the model with its code", async () => {
    const failing = new FakeService(streaming, (request) => {
      request.respondError(new TritonError("NOT_FOUND", "gone"));
    });
    const client = await decoupledClient(failing);
    await expect(client.inferSample({ x: [1, 2] }).next()).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: "gone",
    });
  });

  test("cancels the request when the loop is left or the timeout passes", async () => {
    const service = new FakeService(streaming, (request) => {
      const y = Tensor.fromElements("INT32", [1, 1], Int32Array.of(1));
      request.respond(responseTo(request, new Map([["y", y]])), false);
    });
    const patient = await decoupledClient(service);
    for await (const _ of patient.inferSample({ x: [1, 2] })) break;
    await expect.poll(() => service.requests[0]!.settled).toBe(true);
    const client = await decoupledClient(service, { inferenceTimeoutMs: 100 });
    const read = async () => {
      for await (const _ of client.inferSample({ x: [1, 2] }));
    };
    // On a busy machine the timeout of a call may pass before the server has its request.
    while (service.requests.length === 1) await expect(read()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    await expect.poll(() => service.requests.every(({ settled }) => settled)).toBe(true);
  });
});
