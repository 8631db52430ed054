import { status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { grpc, inference } from "#proto";
import { grpc as frontend } from "../src/index.js";
import { FakeService } from "./support/fake-service.js";
import { overEachTransport } from "./support/over-each-transport.js";
import { serve } from "./support/serve.js";

const restrictedProtocols = [
  { protocols: ["model-repository", "shared-memory"], key: "admin-key", value: "secret" },
  { protocols: ["inference", "health"], key: "infer-key", value: "v2" },
] as const;

const refused = (header: string) => ({
  code: status.UNAVAILABLE,
  details: `This protocol is restricted, expecting header 'triton-grpc-protocol-${header}'`,
});

overEachTransport("a restricted protocol", () => {
  test("needs its header with the prefix and exactly its value", async () => {
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

  test("leaves the others open", async () => {
    const { client } = await serve(new FakeService(), { restrictedProtocols });
    await expect(
      client.call("ServerMetadata", inference.ServerMetadataRequest, inference.ServerMetadataResponse, {}),
    ).resolves.toMatchObject({ name: "triton" });
  });

  test("is restricted once", async () => {
    const twice = frontend({
      port: 0,
      restrictedProtocols: [...restrictedProtocols, restrictedProtocols[0]],
    });
    await expect(twice.start(new FakeService())).rejects.toMatchObject({ code: "INVALID_ARG" });
  });
});
