import { Tensor, TritonError } from "@tritonjs/core";
import type { InferenceRequest } from "@tritonjs/core/testing";
import { expect, test } from "vitest";
import { FakeService, responseTo } from "../../../../grpc/test/support/fake-service.js";
import { overEachTransport } from "../../../../grpc/test/support/over-each-transport.js";
import type { StreamInferRequest, StreamInferResponse } from "../../../src/grpc/index.js";
import { openClient } from "../support/open-client.js";

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
