import { status } from "@grpc/grpc-js";
import { ENDPOINT_GROUPS } from "@tritonjs/core/extension";
import type { Authenticate, AuthenticationRequest } from "@tritonjs/core/types";
import { TritonError } from "@tritonjs/protocol";
import { encodeMessage, grpc, inference } from "@tritonjs/protocol/grpc";
import { Authentication } from "@tritonjs/server";
import { describe, expect, test } from "vitest";
import { grpc as frontend } from "../../src/index.js";
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
    await expect(client.ask("ServerLive", {})).resolves.toMatchObject({ live: true });
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

const restrictedProtocols = [
  { protocols: ["model-repository", "shared-memory"], key: "admin-key", value: "secret" },
  { protocols: ["inference", "health"], key: "infer-key", value: "v2" },
] as const;

const refused = (header: string) => ({
  code: status.UNAVAILABLE,
  details: `This protocol is restricted, expecting header 'triton-grpc-protocol-${header}'`,
});

/** The protocol of each method in tritonserver. */
const protocols: Readonly<Record<string, string>> = {
  "/grpc.health.v1.Health/Check": "health",
  "/grpc.health.v1.Health/Watch": "health",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": "metadata",
  "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": "metadata",
  ...inService("health", ["ServerLive", "ServerReady", "ModelReady"]),
  ...inService("metadata", ["ServerMetadata", "ModelMetadata"]),
  ...inService("inference", ["ModelInfer", "ModelStreamInfer"]),
  ...inService("model-config", ["ModelConfig"]),
  ...inService("statistics", ["ModelStatistics"]),
  ...inService("model-repository", ["RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"]),
  ...inService("shared-memory", [
    "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister",
    "SystemSharedMemoryUnregister",
    "CudaSharedMemoryStatus",
    "CudaSharedMemoryRegister",
    "CudaSharedMemoryUnregister",
  ]),
  ...inService("trace", ["TraceSetting"]),
  ...inService("logging", ["LogSettings"]),
};

function inService(protocol: string, methods: readonly string[]): Record<string, string> {
  return Object.fromEntries(methods.map((name) => [`/inference.GRPCInferenceService/${name}`, protocol]));
}

overEachTransport("a restricted protocol", () => {
  test("requires its header with the prefix and the exact value", async () => {
    const { client } = await serve(new FakeService(), { restrictedProtocols });
    const index = (headers: [string, string][] = []) => client.ask("RepositoryIndex", {}, { headers });
    await expect(index()).rejects.toMatchObject(refused("admin-key"));
    await expect(index([["triton-grpc-protocol-admin-key", "nope"]])).rejects.toMatchObject(
      refused("admin-key"),
    );
    await expect(index([["triton-grpc-protocol-admin-key", ""]])).rejects.toMatchObject(refused("admin-key"));
    await expect(index([["admin-key", "secret"]])).rejects.toMatchObject(refused("admin-key"));
    await expect(
      index([
        ["triton-grpc-protocol-admin-key", "nope"],
        ["triton-grpc-protocol-admin-key", "secret"],
      ]),
    ).rejects.toMatchObject(refused("admin-key"));
    await expect(index([["triton-grpc-protocol-admin-key", "secret"]])).resolves.toBeDefined();
  });

  test("is restricted for every kind of call", async () => {
    const { client } = await serve(new FakeService(), { restrictedProtocols });
    await expect(client.infer({ modelName: "m" })).rejects.toMatchObject(refused("infer-key"));
    const { HealthCheckRequest, HealthCheckResponse } = grpc.health.v1;
    await expect(
      client.call("/grpc.health.v1.Health/Check", HealthCheckRequest, HealthCheckResponse, {}),
    ).rejects.toMatchObject(refused("infer-key"));
    const stream = client.stream();
    const error = await new Promise((resolve) => stream.on("error", resolve).resume());
    expect(error).toMatchObject(refused("infer-key"));
  });

  test("leaves other protocols open", async () => {
    const { client } = await serve(new FakeService(), { restrictedProtocols });
    await expect(client.ask("ServerMetadata", {})).resolves.toMatchObject({ name: "triton" });
  });

  test("is enforced by each of its methods", async () => {
    const everything = ENDPOINT_GROUPS.map((group) => ({
      protocols: [group],
      key: `${group}-key`,
      value: "secret",
    }));
    const { address } = await serve(new FakeService(), { restrictedProtocols: everything, reflection: true });
    const session = rawSession(address.url);
    for (const [path, protocol] of Object.entries(protocols)) {
      const others = ENDPOINT_GROUPS.filter((group) => group !== protocol);
      const headers = Object.fromEntries(
        others.map((group) => [`triton-grpc-protocol-${group}-key`, "secret"]),
      );
      const { grpcStatus, message } = await rawCall(session, framed(Buffer.alloc(0)), {
        ...headers,
        ":path": path,
      });
      expect([path, grpcStatus]).toEqual([path, status.UNAVAILABLE]);
      expect(decodeURIComponent(message ?? "")).toBe(refused(`${protocol}-key`).details);
    }
  });

  test("comes from the service unless the frontend has restrictions of its own", async () => {
    const restrictions = { health: { header: "triton-access-token", value: "secret" } };
    const service = () => Object.assign(new FakeService(), { restrictions });
    const isLive = async (options: { restrictedProtocols?: [] }) => {
      const { client } = await serve(service(), options);
      return client.ask("ServerLive", {});
    };
    await expect(isLive({})).rejects.toMatchObject(refused("triton-access-token"));
    await expect(isLive({ restrictedProtocols: [] })).resolves.toMatchObject({ live: true });
  });

  test("may be restricted only once", async () => {
    const twice = frontend({
      port: 0,
      restrictedProtocols: [...restrictedProtocols, restrictedProtocols[0]],
    });
    await expect(twice.start({ service: new FakeService() })).rejects.toMatchObject({ code: "INVALID_ARG" });
  });
});

describe("restrict", () => {
  test("every gRPC method belongs to the same protocol as in tritonserver", () => {
    const methods = protocolMethods(new FakeService(), { reflection: true }, new Shutdown());
    expect(Object.fromEntries(methods.map(({ path, protocol }) => [path, protocol]))).toEqual(protocols);
  });
});

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);

const keepsSpaces = major > 24 || (major === 24 && minor >= 2) || (major === 22 && minor >= 17);

const headerForwardPattern = /my-|seq|triton_/g;

overEachTransport("headers that match the forward pattern", () => {
  test("become string parameters of every request and override its own", async () => {
    const service = new FakeService();
    const { client } = await serve(service, { headerForwardPattern });
    const extras = {
      headers: [
        ["my-user", "Bob"],
        ["not-my-b", ""],
        ["other", "x"],
      ] as const,
    };
    await client.infer({ modelName: "m", parameters: { "my-user": { stringParam: "eve" } } }, extras);
    await client.infer({ modelName: "m" }, extras);
    expect(service.requests.map(({ parameters }) => parameters)).toEqual([
      { "my-user": "Bob", "not-my-b": "" },
      { "my-user": "Bob", "not-my-b": "" },
    ]);
  });

  test.each(["sequence_id", "triton_x"])("are rejected under the reserved name %s", async (name) => {
    const { client } = await serve(new FakeService(), { headerForwardPattern });
    await expect(client.infer({ modelName: "m" }, { headers: [[name, "5"]] })).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: `Header '${name}' is reserved for Triton usage and cannot be forwarded.`,
    });
  });

  test("are not forwarded without a pattern", async () => {
    const service = new FakeService();
    const { client } = await serve(service);
    await client.infer({ modelName: "m" }, { headers: [["my-user", "Bob"]] });
    expect(service.requests[0]!.parameters).toEqual({});
  });
});

describe("forward headers", () => {
  test.runIf(keepsSpaces)(
    `headers are forwarded with a trailing space in their value${keepsSpaces ? "" : " (skipped: this Node drops such headers)"}`,
    async () => {
      const service = new FakeService();
      const { address } = await serve(service, { headerForwardPattern });
      const body = framed(encodeMessage(inference.ModelInferRequest, { modelName: "m" }));
      await rawCall(rawSession(address.url), body, { "my-user": "Bob " });
      expect(service.requests[0]!.parameters).toEqual({ "my-user": "Bob " });
    },
  );
});
