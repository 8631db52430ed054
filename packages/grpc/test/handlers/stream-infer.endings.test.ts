import { status } from "@grpc/grpc-js";
import { TritonError } from "@tritonjs/core";
import { describe, expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { serve } from "../support/serve.js";
import { answer, manualService, ok, reader } from "../support/stream-reader.js";

overEachTransport("a stream in triton_grpc_error mode", () => {
  const errorMode = [["triton_grpc_error", "true"]] as const;

  test("ends with the status of the model's first error and cancels its other requests", async () => {
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

  test("delivers earlier answers before it ends for a request that timed out", async () => {
    const { service, arrived } = manualService();
    const { client } = await serve(service);
    const stream = client.stream(errorMode);
    const { next, ended } = reader(stream);
    for (const id of ["earlier", "late", "later"]) stream.write({ modelName: "m", id });
    const [earlier, late, later] = await arrived(3);
    late!.respondError(new TritonError("UNAVAILABLE", "Request timeout expired", { reason: "TIMEOUT" }));
    expect(later!.settled).toBe(false);
    answer(earlier!);
    expect((await next()).inferResponse!.id).toBe("earlier");
    expect(await ended).toEqual({ code: status.UNAVAILABLE, details: "Request timeout expired" });
    expect(later!.settled).toBe(true);
  });

  test("continues after a rejected request", async () => {
    const { client } = await serve(new FakeService());
    const stream = client.stream(errorMode);
    const { next, ended } = reader(stream);
    stream.write({ modelName: "nosuch", id: "u" });
    expect((await next()).errorMessage).toBe("Request for unknown model: 'nosuch' is not found");
    stream.end();
    expect(await ended).toEqual(ok);
  });

  test.each(["false", "1", "TRUE", "", "false, true"])("is not turned on by %j", async (value) => {
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

overEachTransport("a stream whose client has left", () => {
  test("cancels all its requests", async () => {
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

describe("a stream of a stopping server over http2", () => {
  test("finishes running requests and rejects new ones", async () => {
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

  test("is cut off with a status when the grace time is over", async () => {
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
