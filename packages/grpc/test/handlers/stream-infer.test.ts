import { Tensor, TritonError } from "@tritonjs/core";
import { expect, test } from "vitest";
import { FakeService, responseTo } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { serve } from "../support/serve.js";
import { answer, manualService, ok, reader } from "../support/stream-reader.js";

const final = { parameters: { triton_final_response: { boolParam: true } } };
const notFinal = { parameters: { triton_final_response: { boolParam: false } } };

overEachTransport("ModelStreamInfer with one response for each request", () => {
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

  test("reports a rejected request with its id, in order, and continues", async () => {
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

  test("reports an error of the model with names and id of the request", async () => {
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

  test("reports a response that cannot be built", async () => {
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

overEachTransport("ModelStreamInfer with a decoupled model", () => {
  test("sends responses of several requests as they are produced", async () => {
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

  test("sends the empty final response when requested", async () => {
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

overEachTransport("ModelStreamInfer with a client that does not read", () => {
  test("holds the model back until the client reads", async () => {
    const count = 600;
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
    expect(made).toBeLessThan(count / 3);
    let received = 0;
    for await (const { inferResponse } of stream) received += inferResponse === null ? 0 : 1;
    expect(received).toBe(count);
  });
});
