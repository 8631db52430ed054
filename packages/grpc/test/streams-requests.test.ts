import { type ClientDuplexStream, type ServiceError, status } from "@grpc/grpc-js";
import { type InferenceRequest, Tensor, TritonError } from "@tritonjs/core";
import { expect, test } from "vitest";
import type { inference } from "#proto";
import { FakeService, responseTo } from "./support/fake-service.js";
import { overEachTransport } from "./support/over-each-transport.js";
import { serve } from "./support/serve.js";

type Received = inference.ModelStreamInferResponse;
type Stream = ClientDuplexStream<inference.ModelInferRequest.$Properties, Received>;

/** Reads a stream: messages one by one, and its status. */
function reader(stream: Stream) {
  const messages: Received[] = [];
  const waiting: ((message: Received) => void)[] = [];
  stream.on("data", (message: Received) => {
    const next = waiting.shift();
    if (next === undefined) messages.push(message);
    else next(message);
  });
  const ended = new Promise<{ code: number; details: string }>((resolve) => {
    stream.on("error", ({ code, details }: ServiceError) => resolve({ code, details }));
    stream.on("status", ({ code, details }) => resolve({ code, details }));
  });
  return {
    ended,
    messages,
    next: (): Promise<Received> => {
      const message = messages.shift();
      return message === undefined
        ? new Promise((resolve) => waiting.push(resolve))
        : Promise.resolve(message);
    },
  };
}

/** A service whose requests are answered by hand. */
function manualService(decoupled = false) {
  const requests: InferenceRequest[] = [];
  let wake = (): void => {};
  const service = new FakeService({ modelTransactionPolicy: { decoupled } }, (request) => {
    requests.push(request);
    wake();
  });
  const arrived = async (count: number): Promise<InferenceRequest[]> => {
    while (requests.length < count) await new Promise<void>((resolve) => (wake = resolve));
    return requests;
  };
  return { service, arrived };
}

const answer = (request: InferenceRequest, final = true) =>
  request.respond(responseTo(request, new Map()), final);

const ok = { code: status.OK, details: "" };
const final = { parameters: { triton_final_response: { boolParam: true } } };
const notFinal = { parameters: { triton_final_response: { boolParam: false } } };

overEachTransport("a stream of requests to a model with one response each", () => {
  test("marks every response as final and ends after the client has closed its side", async () => {
    const { client } = await serve(new FakeService());
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({
      modelName: "m",
      id: "a",
      inputs: [{ name: "X", datatype: "UINT8", shape: [2] }],
      rawInputContents: [Uint8Array.of(1, 2)],
    });
    const { inferResponse, errorMessage } = await next();
    expect(errorMessage).toBe("");
    expect(inferResponse).toMatchObject({ modelName: "m", modelVersion: "1", id: "a", ...final });
    expect([...inferResponse!.rawOutputContents![0]!]).toEqual([1, 2]);
    stream.end();
    expect(await ended).toEqual(ok);
  });

  test("answers in the order of the requests", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    for (const id of ["a", "b", "c"]) stream.write({ modelName: "m", id });
    stream.end();
    const [a, b, c] = await arrived(3);
    answer(c!);
    answer(b!);
    answer(a!);
    expect((await next()).inferResponse!.id).toBe("a");
    expect((await next()).inferResponse!.id).toBe("b");
    expect((await next()).inferResponse!.id).toBe("c");
    expect(await ended).toEqual(ok);
  });

  test("tells of a refused request with its id, in its turn, and goes on", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "slow" });
    stream.write({ modelName: "nosuch", id: "u" });
    stream.write({ modelName: "m", id: "p", parameters: { sequence_id: { boolParam: true } } });
    stream.write({ modelName: "m", id: "last" });
    stream.end();
    const [slow, last] = await arrived(2);
    answer(last!);
    answer(slow!);
    expect((await next()).inferResponse!.id).toBe("slow");
    const unknown = await next();
    expect(unknown.errorMessage).toBe("Request for unknown model: 'nosuch' is not found");
    expect(unknown.inferResponse).toMatchObject({ id: "u", modelName: "", parameters: {} });
    expect(await next()).toMatchObject({
      errorMessage: "invalid value type for 'sequence_id' parameter, expected int64_param or string_param.",
      inferResponse: { id: "p" },
    });
    expect((await next()).inferResponse!.id).toBe("last");
    expect(await ended).toEqual(ok);
  });

  test("tells of an error of the model with the names of the request", async () => {
    const service = new FakeService({}, (request) => {
      request.respondError(new TritonError("NOT_FOUND", request.id === "quiet" ? "" : "gone"));
    });
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "m1" });
    expect(await next()).toMatchObject({
      errorMessage: "gone",
      inferResponse: { id: "m1", modelName: "m", modelVersion: "", ...final },
    });
    stream.write({ modelName: "m", modelVersion: "1", id: "quiet" });
    expect(await next()).toMatchObject({
      errorMessage: "",
      inferResponse: { id: "quiet", modelName: "m", modelVersion: "1", ...final },
    });
    stream.end();
    expect(await ended).toEqual(ok);
  });

  test("tells of a response that cannot be made", async () => {
    const service = new FakeService({}, (request) => {
      const scores = Tensor.fromElements("BYTES", [1], [Buffer.from("a")]);
      request.respond(responseTo(request, new Map([["Y", scores]])));
    });
    const { client } = await serve(service);
    const stream = client.stream();
    const { next } = reader(stream);
    stream.write({
      modelName: "m",
      id: "c",
      outputs: [{ name: "Y", parameters: { classification: { int64Param: 1 } } }],
    });
    expect(await next()).toMatchObject({
      errorMessage: "class result not available for output due to unsupported type 'BYTES'",
      inferResponse: { id: "c", ...final },
    });
    stream.end();
  });

  test("ends at once without a request", async () => {
    const { client } = await serve(new FakeService());
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.end();
    expect(await ended).toEqual(ok);
  });
});

overEachTransport("a stream of requests to a decoupled model", () => {
  test("sends responses as they are made, across requests", async () => {
    const { service, arrived } = manualService(true);
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "a" });
    stream.write({ modelName: "m", id: "b" });
    stream.end();
    const [a, b] = await arrived(2);
    answer(b!, false);
    answer(a!, false);
    answer(b!, true);
    a!.finish();
    expect((await next()).inferResponse).toMatchObject({ id: "b", ...notFinal });
    expect((await next()).inferResponse).toMatchObject({ id: "a", ...notFinal });
    expect((await next()).inferResponse).toMatchObject({ id: "b", ...final });
    expect(await ended).toEqual(ok);
  });

  test("tells of the bare end of a request when asked to", async () => {
    const { service, arrived } = manualService(true);
    const { client } = await serve(service);
    const stream = client.stream();
    const { next, messages, ended } = reader(stream);
    stream.write({
      modelName: "m",
      id: "told",
      parameters: { triton_enable_empty_final_response: { boolParam: true } },
    });
    stream.write({ modelName: "m", id: "silent" });
    stream.end();
    const [told, silent] = await arrived(2);
    silent!.finish();
    told!.finish();
    expect((await next()).inferResponse).toMatchObject({ id: "told", modelName: "m", outputs: [], ...final });
    expect(await ended).toEqual(ok);
    expect(messages).toEqual([]);
  });
});

overEachTransport("a stream whose client does not read", () => {
  test("holds the model back until it does", async () => {
    const count = 2000;
    let made = 0;
    let blocked = (): void => {};
    const blockedOnce = new Promise<void>((resolve) => (blocked = resolve));
    const service = new FakeService({ modelTransactionPolicy: { decoupled: true } }, async (request) => {
      const outputs = new Map([["Y", Tensor.fromBytes("UINT8", [10_000], new Uint8Array(10_000))]]);
      for (; made < count; made++) {
        request.respond(responseTo(request, outputs), made === count - 1);
        if (request.writable === undefined) continue;
        blocked();
        await request.writable;
      }
    });
    const { client } = await serve(service);
    const stream = client.stream();
    stream.write({ modelName: "m" });
    stream.end();
    await blockedOnce;
    expect(made).toBeLessThan(count / 10);
    let received = 0;
    for await (const { inferResponse } of stream) received += inferResponse === null ? 0 : 1;
    expect(received).toBe(count);
  });
});

overEachTransport("a stream that ends on errors", () => {
  const errorMode = [["triton_grpc_error", "true"]] as const;

  test("has the status of the first error of a model; what else runs is cancelled", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream(errorMode);
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "good" });
    answer((await arrived(1))[0]!);
    expect((await next()).inferResponse!.id).toBe("good");
    stream.write({ modelName: "m", id: "other" });
    stream.write({ modelName: "m", id: "bad" });
    const [, other, bad] = await arrived(3);
    bad!.respondError(new TritonError("NOT_FOUND", "gone"));
    expect(await ended).toEqual({ code: status.NOT_FOUND, details: "gone" });
    expect(other!.settled).toBe(true);
  });

  test("goes on after a request that was refused", async () => {
    const { client } = await serve(new FakeService());
    const stream = client.stream(errorMode);
    const { next, ended } = reader(stream);
    stream.write({ modelName: "nosuch", id: "u" });
    expect((await next()).errorMessage).toBe("Request for unknown model: 'nosuch' is not found");
    stream.end();
    expect(await ended).toEqual(ok);
  });

  test.each(["false", "1", "TRUE", "", "false, true"])("is not meant by %j", async (value) => {
    const service = new FakeService(
      {},
      (request) => void request.respondError(new TritonError("INTERNAL", "text")),
    );
    const { client } = await serve(service);
    const stream = client.stream([["triton_grpc_error", value]]);
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m" });
    expect((await next()).errorMessage).toBe("text");
    stream.end();
    expect(await ended).toEqual(ok);
  });
});

overEachTransport("a stream whose client is gone", () => {
  test("cancels all that it runs", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.write({ modelName: "m", id: "a" });
    stream.write({ modelName: "m", id: "b" });
    const requests = await arrived(2);
    const aborted = requests.map(
      ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())),
    );
    stream.cancel();
    await Promise.all(aborted);
    expect(await ended).toMatchObject({ code: status.CANCELLED });
  });
});

overEachTransport("a stream of a server that stops", () => {
  test("finishes what runs, refuses what comes", async () => {
    const { service, arrived } = manualService();
    const { client, frontend } = await serve(service, { stopGraceMs: 30_000 });
    const stream = client.stream();
    const { next, ended } = reader(stream);
    stream.write({ modelName: "m", id: "kept" });
    const [kept] = await arrived(1);
    const stopped = frontend.stop();
    stream.write({ modelName: "m", id: "late" });
    stream.end();
    answer(kept!);
    expect((await next()).inferResponse!.id).toBe("kept");
    expect(await next()).toMatchObject({
      errorMessage: "GRPC server is shutting down and has stopped accepting new requests.",
      inferResponse: { id: "late" },
    });
    expect(await ended).toEqual(ok);
    await stopped;
  });

  test("is cut off with a status when time is over", async () => {
    const { service, arrived } = manualService();
    const { client, frontend } = await serve(service, { stopGraceMs: 0 });
    const stream = client.stream();
    const { ended } = reader(stream);
    stream.write({ modelName: "m" });
    await arrived(1);
    await frontend.stop();
    expect(await ended).toEqual({
      code: status.UNAVAILABLE,
      details: "GRPC server is shutting down and has stopped accepting new requests.",
    });
  });
});
