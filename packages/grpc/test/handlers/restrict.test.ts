import { status } from "@grpc/grpc-js";
import { ENDPOINT_GROUPS } from "@tritonjs/core/frontend";
import { grpc, inference } from "@tritonjs/protocol/grpc";
import { expect, test } from "vitest";
import { grpc as frontend } from "../../src/index.js";
import { protocolMethods } from "../../src/methods/protocol-methods.js";
import { Shutdown } from "../../src/shutdown.js";
import { FakeService } from "../support/fake-service.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { framed, rawCall, rawSession } from "../support/raw-call.js";
import { serve } from "../support/serve.js";

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

test("every gRPC method belongs to the same protocol as in tritonserver", () => {
  const methods = protocolMethods(new FakeService(), { reflection: true }, new Shutdown());
  expect(Object.fromEntries(methods.map(({ path, protocol }) => [path, protocol]))).toEqual(protocols);
});

overEachTransport("a restricted protocol", () => {
  test("requires its header with the prefix and the exact value", async () => {
    const { client } = await serve(new FakeService(), { restrictedProtocols });
    const index = (headers: [string, string][] = []) =>
      client.call(
        "RepositoryIndex",
        inference.RepositoryIndexRequest,
        inference.RepositoryIndexResponse,
        {},
        { headers },
      );
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
    await expect(
      client.call("ServerMetadata", inference.ServerMetadataRequest, inference.ServerMetadataResponse, {}),
    ).resolves.toMatchObject({ name: "triton" });
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
      return client.call("ServerLive", inference.ServerLiveRequest, inference.ServerLiveResponse, {});
    };
    await expect(isLive({})).rejects.toMatchObject(refused("triton-access-token"));
    await expect(isLive({ restrictedProtocols: [] })).resolves.toMatchObject({ live: true });
  });

  test("may be restricted only once", async () => {
    const twice = frontend({
      port: 0,
      restrictedProtocols: [...restrictedProtocols, restrictedProtocols[0]],
    });
    await expect(twice.start(new FakeService())).rejects.toMatchObject({ code: "INVALID_ARG" });
  });
});
