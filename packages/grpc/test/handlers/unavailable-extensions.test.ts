import { status } from "@grpc/grpc-js";
import { inference } from "@tritonjs/protocol/grpc";
import { describe, expect, test } from "vitest";
import { FakeService } from "../support/fake-service.js";
import { serve } from "../support/serve.js";

const notAllowed = {
  code: status.UNAVAILABLE,
  details: "explicit model load / unload is not allowed if polling is enabled",
};

describe("model control is refused", () => {
  test.each<[inference.RepositoryModelLoadRequest.$Properties, object]>([
    [{ modelName: "m" }, notAllowed],
    [
      {
        modelName: "m",
        parameters: { config: { stringParam: "{}" }, "file:1/m": { bytesParam: Buffer.of(1) } },
      },
      notAllowed,
    ],
    [
      { modelName: "m", repositoryName: "x" },
      { code: status.UNIMPLEMENTED, details: "'repository_name' specification is not supported" },
    ],
    [
      { modelName: "m", parameters: { foo: { stringParam: "x" } } },
      { code: status.INVALID_ARGUMENT, details: "unrecognized load parameter 'foo'." },
    ],
    [
      { modelName: "m", parameters: { config: { int64Param: 1 } } },
      {
        code: status.INVALID_ARGUMENT,
        details: "invalid value type for load parameter 'config', expected string_param.",
      },
    ],
    [
      { modelName: "m", parameters: { "file:1/m": { stringParam: "x" } } },
      {
        code: status.INVALID_ARGUMENT,
        details: "invalid value type for load parameter 'file:1/m', expected bytes_param.",
      },
    ],
  ])("for the load request %j", async (request, error) => {
    const { client } = await serve(new FakeService());
    await expect(
      client.call(
        "RepositoryModelLoad",
        inference.RepositoryModelLoadRequest,
        inference.RepositoryModelLoadResponse,
        request,
      ),
    ).rejects.toMatchObject(error);
  });

  test.each<[inference.RepositoryModelUnloadRequest.$Properties, object]>([
    [{ modelName: "m", parameters: { unload_dependents: { boolParam: true } } }, notAllowed],
    [{ modelName: "m", repositoryName: "x" }, { code: status.UNIMPLEMENTED }],
    [
      { modelName: "m", parameters: { unload_dependents: { int64Param: 1 } } },
      {
        code: status.INVALID_ARGUMENT,
        details: "invalid value type for 'unload_dependents' parameter, expected bool_param.",
      },
    ],
  ])("for the unload request %j", async (request, error) => {
    const { client } = await serve(new FakeService());
    await expect(
      client.call(
        "RepositoryModelUnload",
        inference.RepositoryModelUnloadRequest,
        inference.RepositoryModelUnloadResponse,
        request,
      ),
    ).rejects.toMatchObject(error);
  });
});

describe("shared memory calls of a server without shared memory", () => {
  const disabled = {
    code: status.UNIMPLEMENTED,
    details: "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable.",
  };

  test("list no regions and reject new ones", async () => {
    const { client } = await serve(new FakeService());
    const { SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse } = inference;
    const systemStatus = (name: string) =>
      client.call(
        "SystemSharedMemoryStatus",
        SystemSharedMemoryStatusRequest,
        SystemSharedMemoryStatusResponse,
        { name },
      );
    expect(await systemStatus("")).toMatchObject({ regions: {} });
    await expect(systemStatus("r")).rejects.toMatchObject({
      code: status.NOT_FOUND,
      details: "Unable to find system shared memory region: 'r'",
    });
    await expect(
      client.call(
        "CudaSharedMemoryStatus",
        inference.CudaSharedMemoryStatusRequest,
        inference.CudaSharedMemoryStatusResponse,
        { name: "r" },
      ),
    ).rejects.toMatchObject({ details: "Unable to find cuda shared memory region: 'r'" });
    await expect(
      client.call(
        "SystemSharedMemoryRegister",
        inference.SystemSharedMemoryRegisterRequest,
        inference.SystemSharedMemoryRegisterResponse,
        { name: "r", key: "/k", byteSize: 4 },
      ),
    ).rejects.toMatchObject(disabled);
    await expect(
      client.call(
        "CudaSharedMemoryUnregister",
        inference.CudaSharedMemoryUnregisterRequest,
        inference.CudaSharedMemoryUnregisterResponse,
        {},
      ),
    ).rejects.toMatchObject(disabled);
  });
});

test("trace settings are refused by a server without traces", async () => {
  const { client } = await serve(new FakeService());
  await expect(
    client.call("TraceSetting", inference.TraceSettingRequest, inference.TraceSettingResponse, {}),
  ).rejects.toMatchObject({ code: status.UNAVAILABLE, details: "the server does not support trace" });
});
