import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Triton, TritonError } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { chainConfig, identityConfig, RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";
import { HeldBackend } from "./held-backend.js";

describe("reloads", () => {
  let models: RepositoryOnDisk;
  let held: HeldBackend;
  let triton: Triton;

  beforeEach(async () => {
    models = await RepositoryOnDisk.create({ "m/config.pbtxt": heldConfig("1"), "m/1/": "" });
    held = new HeldBackend();
    triton = new Triton({
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [
        repository({
          modelRepository: models.path,
          modelControlMode: "explicit",
          modelLoadThreadCount: 1,
          backends: { held: held.factory },
        }),
      ],
    });
  });

  afterEach(async () => {
    held.answerAll();
    await triton.close();
    await models[Symbol.asyncDispose]();
  });

  function heldConfig(mark: string, more = ""): string {
    const parameter = `parameters { key: "mark" value { string_value: "${mark}" } } ${more}`;
    return identityConfig(parameter).replace("identity", "held");
  }

  const markOf = () => serviceOf(triton).modelConfig("m", "").parameters.mark?.stringValue;

  describe("a reload", () => {
    it("serves the old version until the new one is ready, and finishes running requests on the old one", async () => {
      await triton.loadModel("m");
      const before = triton.infer("m", { INPUT0: [[1]] });
      await held.next();
      await models.write({ "m/config.pbtxt": heldConfig("2") });
      held.holdLoading();
      const reload = triton.loadModel("m");
      await held.loading();
      expect([markOf(), serviceOf(triton).isReady()]).toEqual(["1", true]);
      held.letLoad();
      await reload;
      expect(markOf()).toBe("2");
      // The only instance answers in order, so the new one begins when the old one has answered.
      const after = triton.infer("m", { INPUT0: [[2]] });
      held.answerAll();
      expect([...(await before).OUTPUT0!.data]).toEqual([1]);
      await held.next();
      held.answerAll();
      expect([...(await after).OUTPUT0!.data]).toEqual([2]);
      await held.stopped(1);
    });

    it("delays no call by name", async () => {
      await triton.loadModel("m");
      await models.write({ "m/config.pbtxt": heldConfig("2") });
      held.holdLoading();
      const reload = triton.loadModel("m");
      await held.loading();
      const during = triton.infer("m", { INPUT0: [[3]] });
      await held.next();
      held.answerAll();
      expect([...(await during).OUTPUT0!.data]).toEqual([3]);
      expect(markOf()).toBe("1");
      held.letLoad();
      await reload;
    });

    it("leaves the old version in service when it fails, and is retried", async () => {
      await triton.loadModel("m");
      await models.write({ "m/config.pbtxt": heldConfig("broken") });
      const failure =
        "load failed for model 'm': version 1 is at UNAVAILABLE state: Invalid argument: the mark is broken;\n";
      await expect(triton.loadModel("m")).rejects.toThrow(failure);
      await expect(triton.loadModel("m")).rejects.toThrow(failure);
      expect([markOf(), serviceOf(triton).isReady()]).toEqual(["1", true]);
      expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
        { name: "m", version: "1", state: "READY" },
      ]);
    });

    it("happens in place when only instance groups change", async () => {
      await triton.loadModel("m");
      await models.write({
        "m/config.pbtxt": heldConfig("1", "instance_group [ { count: 3 kind: KIND_CPU } ]"),
      });
      await triton.loadModel("m");
      expect(held.created).toBe(3);
      expect(serviceOf(triton).modelConfig("m", "").instanceGroup[0]).toMatchObject({
        name: "m_0",
        count: 3,
      });
    });

    it("answers once the removed instances are released", async () => {
      const groups = (count: number) =>
        heldConfig("1", `instance_group [ { count: ${count} kind: KIND_CPU } ]`);
      await models.write({ "m/config.pbtxt": groups(2) });
      await triton.loadModel("m");
      const answers = [1, 2].map((value) => triton.infer("m", { INPUT0: [[value]] }));
      await held.next();
      await held.next();
      await models.write({ "m/config.pbtxt": groups(1) });
      const happened: string[] = [];
      const reload = triton.loadModel("m").then(() => happened.push("loaded"));
      const released = held.stopped(1).then(() => happened.push("released"));
      // Another model loads meanwhile: the wait holds no lock.
      await models.write({ "other/config.pbtxt": identityConfig(), "other/1/": "" });
      await triton.loadModel("other");
      expect(happened).toEqual([]);
      held.answerAll();
      await Promise.all([reload, released, ...answers]);
      expect(happened).toEqual(["released", "loaded"]);
    });

    it("recreates only the versions whose directories changed", async () => {
      const policy = (numbers: string) =>
        heldConfig("1", `version_policy { specific { versions: [${numbers}] } }`);
      await models.write({ "m/config.pbtxt": policy("1, 2"), "m/2/note.txt": "old", "m/3/": "" });
      await triton.loadModel("m");
      expect(held.versions).toEqual([1, 2]);
      const answer = triton.infer("m", { INPUT0: [[1]] }, { modelVersion: 1 });
      await held.next();
      held.answerAll();
      await answer;
      await models.write({ "m/config.pbtxt": policy("1, 2, 3"), "m/2/note.txt": "new, and longer" });
      await triton.loadModel("m");
      expect(held.versions).toEqual([1, 2, 2, 3]);
      expect(serviceOf(triton).statistics("m", "1")[0]!.inferenceCount).toBe(1);
      await models.write({ "m/shared.txt": "a file of all versions" });
      await triton.loadModel("m");
      expect(held.versions.slice(4).sort()).toEqual([1, 2, 3]);
      await models.write({ "m/config.pbtxt": policy("3") });
      await triton.loadModel("m");
      await models.write({ "m/config.pbtxt": policy("1, 3") });
      await triton.loadModel("m");
      expect(held.versions.slice(7)).toEqual([1]);
    });

    it("leaves the versions in service when the version directories are gone", async () => {
      await triton.loadModel("m");
      await models.delete("m/1");
      await expect(triton.loadModel("m")).rejects.toThrow(
        "load failed for model 'm': at least one version must be available under the version policy of model 'm'\n",
      );
      expect(serviceOf(triton).isModelReady("m", "1")).toBe(true);
    });

    it("does nothing for an unchanged model", async () => {
      await triton.loadModel("m");
      await triton.loadModel("m");
      expect(held.created).toBe(1);
    });

    it("applies its own configuration until the directory changes", async () => {
      await triton.loadModel("m", { config: JSON.stringify(overrideConfig("mine")) });
      await triton.loadModel("m");
      expect(markOf()).toBe("mine");
      await models.write({ "m/config.pbtxt": heldConfig("disk") });
      await triton.loadModel("m");
      expect(markOf()).toBe("disk");
    });

    it("reads nothing from disk when it has its own files, and the next reload reads only the disk", async () => {
      const files = new Map([["7/note.txt", new TextEncoder().encode("hello")]]);
      await triton.loadModel("m", { config: JSON.stringify(overrideConfig("mine")), files });
      const [row] = await serviceOf(triton).repositoryIndex(true);
      expect(row).toMatchObject({ name: "m", version: "7" });
      expect(held.files.at(-1)).toEqual(["note.txt"]);
      await triton.loadModel("m");
      expect(markOf()).toBe("1");
    });
  });

  describe("a model without a version directory", () => {
    const noVersions = "Request for unknown model: 'empty' has no available versions";
    beforeEach(() => models.write({ "empty/config.pbtxt": identityConfig() }));

    it("has no available versions after a load attempt, and is unknown before it", async () => {
      const ask = () => serviceOf(triton).modelConfig("empty", "");
      expect(ask).toThrow("Request for unknown model: 'empty' is not found");
      await expect(triton.loadModel("empty")).rejects.toThrow("at least one version must be available");
      expect(ask).toThrow(noVersions);
      expect(() => serviceOf(triton).modelConfig("empty", "1")).toThrow(
        "Request for unknown model: 'empty' version 1 is not found",
      );
      expect([serviceOf(triton).isModelReady("empty", ""), serviceOf(triton).isReady()]).toEqual([
        false,
        false,
      ]);
      const [row] = await serviceOf(triton).repositoryIndex(false);
      expect(row).toEqual({
        name: "empty",
        state: "UNAVAILABLE",
        reason: "at least one version must be available under the version policy of model 'empty'",
      });
      await models.write({ "empty/1/": "" });
      await triton.loadModel("empty");
      expect([serviceOf(triton).isModelReady("empty", ""), serviceOf(triton).isReady()]).toEqual([
        true,
        true,
      ]);
    });

    it("is unknown again when its directory is removed", async () => {
      await expect(triton.loadModel("empty")).rejects.toThrow("at least one version must be available");
      await models.delete("empty");
      await expect(triton.loadModel("empty")).rejects.toThrow("failed to poll from model repository");
      expect(() => serviceOf(triton).modelConfig("empty", "")).toThrow("'empty' is not found");
      expect(serviceOf(triton).isReady()).toBe(true);
    });
  });

  describe("unloading", () => {
    it("waits in process for running requests", async () => {
      await triton.loadModel("m");
      const answer = triton.infer("m", { INPUT0: [[1]] });
      await held.next();
      const refused = new Promise<void>((resolve) => {
        const stop = serviceOf(triton).onChange(() => {
          if (serviceOf(triton).isModelReady("m", "")) return;
          stop();
          resolve();
        });
      });
      let unloaded = false;
      const unloading = triton.unloadModel("m").then(() => {
        unloaded = true;
      });
      await refused;
      await expect(triton.infer("m", { INPUT0: [[1]] })).rejects.toThrow(
        "Request for unknown model: 'm' has no available versions",
      );
      expect(unloaded).toBe(false);
      held.answerAll();
      expect([...(await answer).OUTPUT0!.data]).toEqual([1]);
      await unloading;
      expect(await serviceOf(triton).repositoryIndex(false)).toEqual([
        { name: "m", version: "1", state: "UNAVAILABLE", reason: "unloaded" },
      ]);
      expect(serviceOf(triton).isReady()).toBe(true);
    });

    it("ends with close(), even with running requests", async () => {
      await using other = new Triton({
        exitTimeoutSecs: 0.01,
        extensions: [
          repository({
            modelRepository: models.path,
            modelControlMode: "explicit",
            loadModel: ["m"],
            backends: { held: held.factory },
          }),
        ],
      });
      const answer = other.infer("m", { INPUT0: [[1]] });
      answer.catch(() => {});
      await held.next();
      const unloading = other.unloadModel("m");
      await other.close();
      await expect(answer).rejects.toThrow("model 'm' was stopped before the request finished");
      await unloading;
    });
  });

  describe("model control", () => {
    it("is rejected unless its mode is explicit", async () => {
      await using closed = new Triton({
        extensions: [repository({ modelRepository: models.path, backends: { held: held.factory } })],
      });
      const refusal = "explicit model load / unload is not allowed if polling is enabled";
      await expect(closed.loadModel("m")).rejects.toThrow(refusal);
      await expect(closed.unloadModel("m")).rejects.toThrow(refusal);
    });

    it.each(["", " ", "..", ".", "../m", "a/b", "m\0"])("rejects the name %j", async (name) => {
      await expect(triton.loadModel(name)).rejects.toMatchObject({ code: "INVALID_ARG" });
    });

    it("loads several models side by side, each once", async () => {
      await models.write({ "n/config.pbtxt": heldConfig("1"), "n/1/": "" });
      await Promise.all([triton.loadModel("m"), triton.loadModel("n"), triton.loadModel("m")]);
      expect(held.created).toBe(2);
    });
  });

  function overrideConfig(mark: string) {
    const tensor = { data_type: "TYPE_FP32", dims: [-1] };
    return {
      backend: "held",
      max_batch_size: 4,
      input: [{ name: "INPUT0", ...tensor }],
      output: [{ name: "OUTPUT0", ...tensor }],
      parameters: { mark: { string_value: mark } },
    };
  }
});

const NAMES = ["a", "b", "chain", "double-chain", "none"];

const WORKERS = 8;

const STEPS = 20;

const whole = {
  "a/config.pbtxt": identityConfig(),
  "a/1/": "",
  "b/config.pbtxt": identityConfig(),
  "b/1/": "",
  "chain/config.pbtxt": chainConfig("a", "b"),
  "chain/1/": "",
  "double-chain/config.pbtxt": chainConfig("b", "a"),
  "double-chain/1/": "",
};

/** Drops the error when two tasks write and remove the same directory. */
const ignoreConflict = () => {};

/** Pseudo-random numbers below `limit`, the same each time. */
function numbers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

describe("random changes", () => {
  it.each([1, 2])(
    "random loads, unloads and file changes leave a server that matches the directory, %i",
    async (seed) => {
      await using models = await RepositoryOnDisk.create(whole);
      const logger = { error() {}, warn() {}, info() {}, debug() {} };
      await using triton = new Triton({
        logger,
        extensions: [repository({ modelRepository: models.path, modelControlMode: "explicit" })],
      });
      const next = numbers(seed);
      const tensors = { input: "INPUT0", output: "OUTPUT0" };
      const override = (backend: string) =>
        JSON.stringify({
          backend,
          max_batch_size: 4,
          ...Object.fromEntries(
            Object.entries(tensors).map(([kind, name]) => [
              kind,
              [{ name, data_type: "TYPE_FP32", dims: [-1] }],
            ]),
          ),
        });
      const step = async (): Promise<void> => {
        const name = NAMES[next(NAMES.length)]!;
        const input = name.includes("chain") ? "IN" : "INPUT0";
        const files = new Map([[`${1 + next(3)}/x`, new Uint8Array(8)]]);
        const version = `${name}/${1 + next(3)}`;
        const steps: (() => Promise<unknown>)[] = [
          () => triton.loadModel(name),
          () => triton.unloadModel(name, { unloadDependents: next(2) === 0 }),
          () => triton.loadModel(name, { config: override(next(3) === 0 ? "nosuch" : "identity"), files }),
          () => triton.infer(name, { [input]: [[7]] }),
          () => models.write({ [`${version}/`]: "" }).catch(ignoreConflict),
          () => rm(join(models.path, version), { recursive: true, force: true }).catch(ignoreConflict),
          () =>
            models
              .write({ [`${name}/config.pbtxt`]: next(3) === 0 ? "oops" : identityConfig() })
              .catch(ignoreConflict),
        ];
        await steps[next(steps.length)]!();
      };
      const work = async (): Promise<void> => {
        for (let i = 0; i < STEPS; i++) {
          await step().catch((error) => {
            // Each rejection is an error of the server.
            expect(TritonError.is(error)).toBe(true);
          });
        }
      };
      await Promise.all(Array.from({ length: WORKERS }, work));
      for (const name of NAMES) await rm(join(models.path, name), { recursive: true, force: true });
      // As in Triton, a failed version keeps the server from being ready until it is loaded.
      const files = new Map([1, 2, 3].map((version) => [`${version}/x`, new Uint8Array(8)]));
      await triton.loadModel("none", { config: override("identity"), files });
      await triton.unloadModel("none");
      await models.write(whole);
      for (const name of ["double-chain", "chain", "b", "a"]) await triton.loadModel(name);
      await expect(triton.loadModel("none")).rejects.toThrow("failed to load 'none'");
      for (const name of ["chain", "double-chain"]) {
        const { OUT } = await triton.infer(name, { IN: [[7]] });
        expect([...OUT!.data]).toEqual([7]);
      }
      const ready = (await serviceOf(triton).repositoryIndex(true)).map(
        ({ name, version }) => `${name}:${version}`,
      );
      expect(ready).toEqual(["a:1", "b:1", "chain:1", "double-chain:1"]);
      expect(serviceOf(triton).isReady()).toBe(true);
    },
  );
});
