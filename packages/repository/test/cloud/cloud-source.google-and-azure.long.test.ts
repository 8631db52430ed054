import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Log, realClock } from "@tritonjs/core/extension";
import { expect, it } from "vitest";
import { AzureServer } from "../../../../examples/cloud-repository/servers/azure-server.js";
import { GoogleServer } from "../../../../examples/cloud-repository/servers/google-server.js";
import { type CloudPath, openStorage, parseCloudPath } from "../../src/directories/cloud-storage.js";
import { CloudSource } from "../../src/directories/repository-source.js";

const log = new Log({ error() {}, warn() {}, info() {}, debug() {} });

function sourceAt(path: string, environment: NodeJS.ProcessEnv): CloudSource {
  const open = (parsed: CloudPath) => openStorage(parsed, environment);
  return new CloudSource(parseCloudPath(path), realClock, log, open);
}

async function google() {
  const server = await GoogleServer.start();
  // The SDK reads the address of an emulator only from this variable.
  process.env.STORAGE_EMULATOR_HOST = server.address;
  return { server, source: sourceAt("gs://bucket/models", {}) };
}

const KEY = Buffer.from("key").toString("base64");

async function azure(environment: NodeJS.ProcessEnv = { AZURE_STORAGE_KEY: KEY }) {
  const server = await AzureServer.start();
  const endpoint = { AZURE_STORAGE_SERVICE_ENDPOINT: server.address };
  return { server, source: sourceAt("as://account/bucket/models", { ...environment, ...endpoint }) };
}

for (const [name, start] of Object.entries({ google, azure })) {
  it(`${name}: copies a model, notices a change, and reuses unchanged files of the previous copy`, async () => {
    const { server, source } = await start();
    await using _ = server;
    server.put("models/größe/config.pbtxt", "one");
    server.put("models/größe/1/weights #1.bin", "weights");
    server.put("models/b/config.pbtxt", "b");
    server.put("models/readme.txt", "no model");
    await source.check();
    expect(await source.listed()).toEqual(["b", "größe"]);
    await source.refresh(["größe"]);
    expect(await source.has("b")).toBe(false);
    const first = await source.open("größe");
    expect(await readFile(join(first.directory, "1", "weights #1.bin"), "utf8")).toBe("weights");

    await source.refresh();
    expect((await source.open("größe")).copy).toBe(first.copy);
    server.put("models/größe/config.pbtxt", "two");
    server.requests.length = 0;
    await source.refresh();
    const second = await source.open("größe");
    expect(second.copy).not.toBe(first.copy);
    expect(await readFile(join(second.directory, "config.pbtxt"), "utf8")).toBe("two");
    expect(await readFile(join(first.directory, "config.pbtxt"), "utf8")).toBe("one");
    expect(server.requests.filter((path) => path.includes("weights"))).toEqual([]);
    await source.close();
    await expect(readdir(first.directory)).rejects.toThrow("ENOENT");
  });

  it(`${name}: finds models among five thousand objects and copies one with many files`, async () => {
    const { server, source } = await start();
    await using _ = server;
    for (let i = 0; i < 5_000; i++) server.put(`models/note-${i}`, `${i}`);
    for (let i = 0; i < 300; i++) server.put(`models/zoo/1/part-${i}`, `${i}`);
    await source.refresh();
    expect(await source.names()).toEqual(["zoo"]);
    expect(await source.listed()).toEqual(["zoo"]);
    const { directory } = await source.open("zoo");
    expect(await readdir(join(directory, "1"))).toHaveLength(300);
    await source.close();
  });

  it(`${name}: reports a missing bucket and an unreachable server with the storage's own words`, async () => {
    const { server, source } = await start();
    const path = source.path.replace("bucket", "other");
    const other = sourceAt(path, { ...process.env, AZURE_STORAGE_SERVICE_ENDPOINT: server.address });
    await expect(other.check()).rejects.toThrow(
      /^Could not list contents of directory at .*other\/models due to exception: .*(not exist|NotFound)/,
    );
    await server[Symbol.asyncDispose]();
    await expect(source.check()).rejects.toThrow(/ECONNREFUSED/);
    await source.close();
    await other.close();
  });

  it(`${name}: copies the newest content of a model that changes while it is copied`, async () => {
    const { server, source } = await start();
    await using _ = server;
    server.put("models/m/1/weights.bin", "old weights");
    let times = 0;
    server.intercept = (path) => {
      if (path.endsWith("weights.bin") && times++ === 0) server.put("models/m/1/weights.bin", "new weights");
      return false;
    };
    await source.refresh(["m"]);
    const { directory } = await source.open("m");
    expect(await readFile(join(directory, "1", "weights.bin"), "utf8")).toBe("new weights");
    await source.close();
  });
}

it("azure: treats the directory objects of hierarchical accounts as directories", async () => {
  const { server, source } = await azure();
  await using _ = server;
  server.put("models/m", "", true);
  server.put("models/m/1", "", true);
  server.put("models/m/1/weights.bin", "w");
  await source.refresh();
  const { directory } = await source.open("m");
  expect(await readdir(join(directory, "1"))).toEqual(["weights.bin"]);
  await source.close();
});

it("azure: signs with the account key of the credentials before that of the path, and not at all without a key", async () => {
  for (const [environment, authorization] of [
    [{ AZURE_STORAGE_KEY: KEY }, "SharedKey account"],
    [{ AZURE_STORAGE_KEY: KEY, AZURE_STORAGE_ACCOUNT: "mine" }, "SharedKey mine"],
    [{}, "none"],
  ] as const) {
    const { server, source } = await azure(environment);
    await using _ = server;
    server.put("models/m/1/weights.bin", "w");
    await source.check();
    expect([...server.authorizations]).toEqual([authorization]);
    await source.close();
  }
});
