import { access } from "node:fs/promises";
import { sample, Triton, TritonError } from "@tritonjs/core";
import { type BackendFactory, callbackExecutor } from "@tritonjs/core/backend";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";

const config = JSON.stringify({
  backend: "note",
  input: [{ name: "x", data_type: "TYPE_FP32", dims: [1] }],
  output: [{ name: "y", data_type: "TYPE_FP32", dims: [1] }],
});
const filesWith = (text: string, path = "1/note.txt") => new Map([[path, new TextEncoder().encode(text)]]);

/** Directories from which versions were created, in order. */
let directories: string[];
let models: RepositoryOnDisk;
let triton: Triton;

const note: BackendFactory = ({ directory, versionDirectory }) => {
  directories.push(directory);
  return {
    backendName: "note",
    platform: "",
    describe: () => undefined,
    checkConfig: () => {
      if (versionDirectory.endsWith("9")) throw new TritonError("INVALID_ARG", "not this one");
    },
    createExecutor: (context) =>
      callbackExecutor(
        sample(({ x }) => ({ y: x! })),
        context,
      ),
  };
};

beforeEach(async () => {
  directories = [];
  models = await RepositoryOnDisk.create({ "disk/": "" });
  triton = new Triton({
    modelRepository: models.path,
    modelControlMode: "explicit",
    backends: { note },
    logger: { error() {}, warn() {}, info() {}, debug() {} },
  });
});
afterEach(async () => {
  await triton.close();
  await models[Symbol.asyncDispose]();
});

const isThere = (path: string) =>
  access(path).then(
    () => true,
    () => false,
  );
const left = async () => {
  const found = await Promise.all(directories.map(async (path) => [path, await isThere(path)] as const));
  return found.filter(([, there]) => there).map(([path]) => path);
};

describe("files of a load request", () => {
  it("create a model outside any repository, and exist as long as it does", async () => {
    await triton.loadModel("m", { config, files: filesWith("a") });
    expect([...(await triton.infer("m", { x: [3] })).y!.data]).toEqual([3]);
    expect(await left()).toEqual(directories);
    await triton.unloadModel("m");
    await expect.poll(left).toEqual([]);
  });

  it("are deleted when the server closes while their model serves", async () => {
    await triton.loadModel("m", { config, files: filesWith("a") });
    await triton.close();
    expect(directories).toHaveLength(1);
    expect(await left()).toEqual([]);
  });

  it("are deleted when loading fails and when others replace them", async () => {
    await expect(triton.loadModel("m", { config, files: filesWith("a", "9/note.txt") })).rejects.toThrow(
      "load failed for model 'm': version 9 is at UNAVAILABLE state: Invalid argument: not this one;\n",
    );
    expect(await left()).toEqual([]);
    await triton.loadModel("m", { config, files: filesWith("b") });
    await triton.loadModel("m", { config, files: filesWith("c") });
    await expect.poll(left).toEqual(directories.slice(-1));
  });

  it("leave nothing behind after many loads and unloads", async () => {
    for (let i = 0; i < 50; i++) {
      await triton.loadModel("m", { config, files: filesWith(String(i)) });
      if (i % 2 === 0) await triton.unloadModel("m");
    }
    expect(new Set(directories).size).toBe(50);
    await triton.close();
    expect(await left()).toEqual([]);
  });

  it("are rejected without a configuration", async () => {
    await expect(triton.loadModel("m", { files: filesWith("a") })).rejects.toMatchObject({
      code: "INTERNAL",
      cause: { message: "Load parameter 'config' must be specified for model file override" },
    });
  });

  it.each(["../up", "/../up", "1/../../up", "1", "", "a\0b"])("are rejected at the path %j", async (path) => {
    const files = new Map([...filesWith("a"), [path, new Uint8Array()]]);
    await expect(triton.loadModel("m", { config, files })).rejects.toMatchObject({
      message: "failed to load 'm', failed to poll from model repository",
    });
    expect(directories).toEqual([]);
  });
});
