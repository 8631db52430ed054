import { connect } from "node:http2";
import { status } from "@grpc/grpc-js";
import type { InferenceRequest } from "@tritonjs/core/testing";
import { encodeMessage, inference } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { FakeService, responseTo } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { serve } from "../support/serve.js";

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
