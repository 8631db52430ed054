import { status } from "@grpc/grpc-js";
import { decodeMessage, encodeMessage, grpc, inference } from "@tritonjs/protocol/grpc";
import protobuf from "protobufjs";
import descriptor from "protobufjs/ext/descriptor.js";
import { expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import type { GrpcClient } from "../support/grpc-client.js";
import { overEachTransport } from "../support/over-each-transport.js";
import { serve } from "../support/serve.js";

const { ServerReflectionRequest, ServerReflectionResponse } = grpc.reflection.v1;
type Request = grpc.reflection.v1.ServerReflectionRequest.$Properties;

const VERSIONS = ["v1", "v1alpha"];

/** Sends requests over one stream. */
async function ask(client: GrpcClient, version: string, ...requests: Request[]) {
  const call = client.makeBidiStreamRequest(
    `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
    (request: Request) => encodeMessage(ServerReflectionRequest, request),
    (bytes) => decodeMessage(ServerReflectionResponse, bytes),
  );
  for (const request of requests) call.write(request);
  call.end();
  const responses: (typeof ServerReflectionResponse.prototype)[] = [];
  for await (const response of call) responses.push(response);
  return responses;
}

overEachTransport("server reflection", () => {
  test.each(VERSIONS)("lists the services with %s", async (version) => {
    const { client } = await serve(new FakeService(), { reflection: true });
    const [response] = await ask(client, version, { listServices: "", host: "h" });
    expect(response).toMatchObject({ validHost: "h", originalRequest: { listServices: "" } });
    expect(response!.listServicesResponse!.service!.map(({ name }) => name)).toEqual([
      "inference.GRPCInferenceService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
    ]);
  });

  test.each([
    "inference.GRPCInferenceService",
    "inference.GRPCInferenceService.ModelInfer",
    "inference.ModelInferRequest.InferInputTensor",
    "inference.DataType",
  ])("describes %s so that a program can call it", async (symbol) => {
    const { client } = await serve(new FakeService(), { reflection: true });
    const [response, byName] = await ask(
      client,
      "v1",
      { fileContainingSymbol: symbol },
      { fileByFilename: "inference.proto" },
    );
    const [file] = response!.fileDescriptorResponse!.fileDescriptorProto!;
    expect(byName!.fileDescriptorResponse!.fileDescriptorProto![0]).toEqual(file);
    const fileDescriptor = descriptor.FileDescriptorProto.decode(file!) as descriptor.IFileDescriptorProto;
    const root = protobuf.Root.fromDescriptor(
      descriptor.FileDescriptorSet.encode({ file: [fileDescriptor] }).finish(),
    );
    const service = root.lookupService("inference.GRPCInferenceService");
    const { requestStream, responseStream } = service.methods.ModelStreamInfer!;
    expect([requestStream, responseStream]).toEqual([true, true]);
    const request = root.lookupType("inference.ModelInferRequest");
    const message = request.create({
      modelName: "m",
      parameters: { k: { int64Param: 1 } },
      rawInputContents: [Uint8Array.of(1)],
    });
    const bytes = Buffer.from(request.encode(message).finish());
    const decoded = decodeMessage(inference.ModelInferRequest, bytes);
    expect(decoded).toMatchObject({ modelName: "m", parameters: { k: { int64Param: 1 } } });
  });

  test("reports unknown symbols and files", async () => {
    const { client } = await serve(new FakeService(), { reflection: true });
    const requests = [
      { fileContainingSymbol: "nosuch.Service" },
      { fileByFilename: "nosuch.proto" },
      { allExtensionNumbersOfType: "nosuch.Type" },
      { fileContainingExtension: { containingType: "inference.ModelConfig", extensionNumber: 1 } },
    ];
    const [extensions, nothing, ...unknown] = await ask(
      client,
      "v1",
      { allExtensionNumbersOfType: "inference.ModelConfig" },
      {},
      ...requests,
    );
    expect(extensions!.allExtensionNumbersResponse!.extensionNumber).toEqual([]);
    expect(nothing!.errorResponse!.errorCode).toBe(status.INVALID_ARGUMENT);
    expect(unknown.map(({ errorResponse }) => errorResponse!.errorCode)).toEqual(
      requests.map(() => status.NOT_FOUND),
    );
  });

  test("is off by default and restricted together with the metadata", async () => {
    const { client } = await serve(new FakeService());
    await expect(ask(client, "v1", { listServices: "" })).rejects.toMatchObject({
      code: status.UNIMPLEMENTED,
    });
    const restrictedProtocols = [{ protocols: ["metadata"], key: "k", value: "v" }] as const;
    const { client: stranger } = await serve(new FakeService(), { reflection: true, restrictedProtocols });
    await expect(ask(stranger, "v1", { listServices: "" })).rejects.toMatchObject({
      code: status.UNAVAILABLE,
    });
  });
});
