import { once } from "node:events";
import { connect as connectHttp2, createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { inference } from "@tritonjs/protocol/grpc";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { FakeService } from "../../support/fake-service.js";
import { rawSession } from "../../support/raw-call.js";
import { serve } from "../../support/serve.js";

/** Takes the property `state` from all sessions of this file, as Bun does with those that it ends. */
beforeAll(async () => {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  const opened = once(server, "session");
  await once(server, "listening");
  const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  let owner: object = (await opened)[0];
  while (!Object.hasOwn(owner, "state")) owner = Object.getPrototypeOf(owner);
  Object.defineProperty(owner, "state", { get: () => undefined });
  client.destroy();
  server.close();
});

it("the frontend answers, and stops with open connections, where sessions have no state", async () => {
  const { client, frontend, address } = await serve(new FakeService(), { stopGraceMs: 60_000 });
  const { ServerLiveRequest, ServerLiveResponse } = inference;
  expect(await client.call("ServerLive", ServerLiveRequest, ServerLiveResponse, {})).toMatchObject({
    live: true,
  });
  const idle = rawSession(address.url);
  await once(idle, "remoteSettings");
  expect(idle.state).toBeUndefined();
  await Promise.all([once(idle, "close"), frontend.stop()]);
});

it("a session without a state is destroyed with its connection", async () => {
  const { frontend, address } = await serve(new FakeService(), { stopGraceMs: 0 });
  const client = rawSession(address.url);
  await once(client, "remoteSettings");
  const stream = client.request({ ":method": "POST", ":path": "/inference.GRPCInferenceService/ServerLive" });
  stream.on("error", () => {});
  onTestFinished(() => void stream.destroy());
  await Promise.all([once(client, "close"), frontend.stop()]);
});
