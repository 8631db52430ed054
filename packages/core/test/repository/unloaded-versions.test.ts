import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Triton } from "@tritonjs/core";
import type { BackendFactory } from "@tritonjs/core/backend";
import { expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { HeldBackend } from "./held-backend.js";

it("keeps the state of unloaded versions in the index, and nothing else of them", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const versions: WeakRef<object>[] = [];
  const held: BackendFactory = (init) => {
    const backend = new HeldBackend().factory(init);
    versions.push(new WeakRef(backend));
    return backend;
  };
  await using models = await RepositoryOnDisk.create({
    "m/config.pbtxt": identityConfig().replace("identity", "held"),
    "m/1/": "",
  });
  await using triton = new Triton({
    modelRepository: models.path,
    modelControlMode: "explicit",
    backends: { held },
    logger: { error() {}, warn() {}, info() {}, debug() {} },
  });
  await triton.loadModel("m");
  for (const version of [2, 3, 4]) {
    await models.write({ [`m/${version}/`]: "" });
    await triton.loadModel("m");
  }
  const isHeld = () => {
    collectGarbage();
    return versions.map((version) => version.deref() !== undefined);
  };
  await expect.poll(isHeld).toEqual([false, false, false, true]);
  const index = await triton.service.repositoryIndex(false);
  expect(index.map(({ version, state, reason }) => [version, state, reason])).toEqual([
    ["1", "UNAVAILABLE", "unloaded"],
    ["2", "UNAVAILABLE", "unloaded"],
    ["3", "UNAVAILABLE", "unloaded"],
    ["4", "READY", undefined],
  ]);
});
