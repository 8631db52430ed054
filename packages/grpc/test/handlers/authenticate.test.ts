import { status } from "@grpc/grpc-js";
import { Authentication } from "@tritonjs/core/frontend";
import type { Authenticate, AuthenticationRequest } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { grpc, inference } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { protocolMethods } from "../../src/methods/protocol-methods.js";
import { Shutdown } from "../../src/shutdown.js";
import { FakeService } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { framed, rawCall, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";

const authorization = [["authorization", "Bearer secret"]] as const;

const bearer: Authenticate = async ({ headers }) => {
  const sent = headers.get("authorization");
  if (sent === null) {
    throw new TritonError("UNAVAILABLE", "a token is required", { reason: "UNAUTHENTICATED" });
  }
  if (sent !== "Bearer secret") {
    throw new TritonError("UNAVAILABLE", "this token may not infer", { reason: "PERMISSION_DENIED" });
  }
};

const UNAUTHENTICATED = { code: status.UNAUTHENTICATED, details: "a token is required" };

function guarded(authenticate: Authenticate, said: string[] = []) {
  const authentication = new Authentication(authenticate, {}, { error: (line) => said.push(line) });
  return Object.assign(new FakeService(), { authentication });
}

overEachTransport("the authentication hook", () => {
  test("refuses a call with UNAUTHENTICATED or PERMISSION_DENIED, or lets it through", async () => {
    const service = guarded(bearer);
    const { client } = await serve(service);
    await expect(client.infer({ modelName: "m" })).rejects.toMatchObject(UNAUTHENTICATED);
    const headers = [["authorization", "Bearer other"]] as const;
    await expect(client.infer({ modelName: "m" }, { headers })).rejects.toMatchObject({
      code: status.PERMISSION_DENIED,
      details: "this token may not infer",
    });
    expect(service.requests).toEqual([]);
    await expect(client.infer({ modelName: "m" }, { headers: authorization })).resolves.toBeDefined();
  });

  test("is asked once for a stream, before any of its messages is read", async () => {
    const asked: AuthenticationRequest[] = [];
    let allow = () => {};
    const allowed = new Promise<void>((resolve) => {
      allow = resolve;
    });
    const service = guarded((request) => {
      asked.push(request);
      return allowed;
    });
    const { client } = await serve(service);
    const stream = client.stream(authorization);
    const answers: unknown[] = [];
    stream.on("data", (answer) => answers.push(answer));
    stream.write({ modelName: "m", id: "1" });
    stream.write({ modelName: "m", id: "2" });
    await expect.poll(() => asked.length).toBe(1);
    expect(service.requests).toEqual([]);
    allow();
    await expect.poll(() => answers.length).toBe(2);
    stream.end();
    await new Promise((resolve) => stream.on("end", resolve));
    expect(asked).toHaveLength(1);
    const { headers, remoteAddress, ...rest } = asked[0]!;
    expect(rest).toEqual({
      transport: "grpc",
      method: "POST",
      path: "/inference.GRPCInferenceService/ModelStreamInfer",
      group: "inference",
    });
    expect(headers.get("authorization")).toBe("Bearer secret");
    expect(remoteAddress).toMatch(/^(127\.0\.0\.1|::1|::ffff:127\.0\.0\.1)$/);
  });

  test("refuses a stream", async () => {
    const { client } = await serve(guarded(bearer));
    const stream = client.stream();
    stream.write({ modelName: "m" });
    expect(await new Promise((resolve) => stream.on("error", resolve).resume())).toMatchObject(
      UNAUTHENTICATED,
    );
  });

  test("lets a stream without messages end", async () => {
    const { client } = await serve(guarded(bearer));
    const stream = client.stream(authorization);
    stream.end();
    await new Promise((resolve) => stream.on("end", resolve).resume());
  });

  test("is asked by every method but those of health", async () => {
    const asked: string[] = [];
    const service = guarded(({ path }) => {
      asked.push(path);
      throw new TritonError("UNAVAILABLE", "no", { reason: "UNAUTHENTICATED" });
    });
    const { address, client } = await serve(service, { reflection: true });
    const methods = protocolMethods(service, { reflection: true }, new Shutdown());
    const session = rawSession(address.url);
    const closed = methods.filter(({ protocol }) => protocol !== "health").map(({ path }) => path);
    for (const path of closed) {
      const { grpcStatus } = await rawCall(session, framed(Buffer.alloc(0)), { ":path": path });
      expect([path, grpcStatus]).toEqual([path, status.UNAUTHENTICATED]);
    }
    expect(asked).toEqual(closed);
    const { HealthCheckRequest, HealthCheckResponse } = grpc.health.v1;
    await expect(
      client.call("/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse, {}),
    ).resolves.toBeDefined();
    await expect(
      client.call("ServerLive", inference.ServerLiveRequest, inference.ServerLiveResponse, {}),
    ).resolves.toMatchObject({ live: true });
  });

  test("answers INTERNAL without the text of another error, and logs it", async () => {
    const said: string[] = [];
    const service = guarded(() => {
      throw new Error("password of the directory: hunter2");
    }, said);
    const { client } = await serve(service);
    await expect(client.infer({ modelName: "m" })).rejects.toMatchObject({
      code: status.INTERNAL,
      details: "internal error",
    });
    expect(said.join()).toContain("security.authenticate failed for POST /inference.GRPCInferenceService");
  });

  test("that never decides leaves a call to its deadline", async () => {
    const { client } = await serve(guarded(() => new Promise(() => {})));
    const options = { deadline: Date.now() + 50 };
    await expect(client.infer({ modelName: "m" }, { options })).rejects.toMatchObject({
      code: status.DEADLINE_EXCEEDED,
    });
  });
});
