import { Metadata } from "@grpc/grpc-js";
import { decodeMessage, encodeMessage, grpc } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { serve } from "../support/serve.js";

const { HealthCheckRequest, HealthCheckResponse } = grpc.health.v1;
const { SERVING, NOT_SERVING } = HealthCheckResponse.ServingStatus;

overEachTransport("Health/Watch", () => {
  test("sends the state to a watcher, and each change", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    const watch = client.makeServerStreamRequest(
      "/grpc.health.v1.Health/Watch",
      (message: object) => encodeMessage(HealthCheckRequest, message),
      (bytes) => decodeMessage(HealthCheckResponse, bytes),
      {},
      new Metadata(),
    );
    watch.on("error", () => {});
    const states: number[] = [];
    for await (const { status } of watch) {
      states.push(status);
      service.ready = !service.ready;
      if (states.length === 3) break;
    }
    expect(states).toEqual([SERVING, NOT_SERVING, SERVING]);
  });
});
