import { Triton } from "@tritonjs/core";
import { expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const files = { "model/config.pbtxt": `name: "model"\n${identityConfig()}`, "model/1/": "" };
const input = { INPUT0: [[1, 2]] };

it("models of a registered directory load on request, under the names that were given", async () => {
  await using models = await RepositoryOnDisk.create({
    ...files,
    "own/config.pbtxt": identityConfig(),
    "own/1/": "",
  });
  await using triton = new Triton({ modelControlMode: "explicit" });
  await triton.registerModelRepository(models.path, { model: "echo-7" });
  await triton.loadModel("echo-7");
  await triton.loadModel("own");
  expect([...(await triton.infer("echo-7", input)).OUTPUT0!.data]).toEqual([1, 2]);
  expect(triton.service.modelConfig("echo-7", "").name).toBe("echo-7");
  expect(await triton.service.repositoryIndex(false)).toEqual([
    { name: "echo-7", version: "1", state: "READY" },
    { name: "own", version: "1", state: "READY" },
  ]);
  await expect(triton.loadModel("model")).rejects.toThrow("failed to load 'model'");
});

it("an unregistered directory keeps its models in service until they are unloaded", async () => {
  await using models = await RepositoryOnDisk.create(files);
  await using triton = new Triton({ modelControlMode: "explicit" });
  await triton.registerModelRepository(models.path);
  await triton.loadModel("model");
  triton.unregisterModelRepository(models.path);
  expect([...(await triton.infer("model", input)).OUTPUT0!.data]).toEqual([1, 2]);
  await triton.unloadModel("model");
  await expect(triton.loadModel("model")).rejects.toThrow("failed to load 'model'");
});

it("refuses a directory that is absent or registered, bad names, and servers that load no models on request", async () => {
  await using models = await RepositoryOnDisk.create(files);
  await using triton = new Triton({ modelControlMode: "explicit" });
  await triton.registerModelRepository(models.path);
  await expect(triton.registerModelRepository(models.path)).rejects.toMatchObject({ code: "ALREADY_EXISTS" });
  await expect(triton.registerModelRepository("/no/such/directory")).rejects.toThrow("repository not found");
  await expect(triton.registerModelRepository(models.path, { "../x": "a" })).rejects.toThrow(
    "path traversal",
  );
  await expect(triton.registerModelRepository(models.path, { model: "" })).rejects.toThrow("cannot be empty");
  expect(() => triton.unregisterModelRepository("/no/such/directory")).toThrow("repository not found");
  await using other = new Triton();
  await expect(other.registerModelRepository(models.path)).rejects.toMatchObject({ code: "UNAVAILABLE" });
});
