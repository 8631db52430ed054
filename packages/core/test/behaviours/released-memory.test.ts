import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { batch, Triton } from "@tritonjs/core";
import type { BackendFactory } from "@tritonjs/core/backend";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { describe, expect, it } from "vitest";
import { identityConfig, RepositoryOnDisk } from "../../../../test/support/repository-on-disk.js";
import { HeldBackend } from "../../../repository/test/held-backend.js";
import { withSignal } from "../../src/instance/callback-context.js";

describe("idle model memory", () => {
  it("an idle model keeps no reference to the requests of its last batch", async () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage = runInNewContext("gc") as () => void;
    await using triton = new Triton();
    const seen: WeakRef<object>[] = [];
    const model = triton.bind({
      modelName: "m",
      inputs: [{ name: "x", dtype: "FP32", shape: [4] }],
      outputs: [{ name: "y", dtype: "FP32", shape: [4] }],
      inferFunc: batch(({ x }, { requests }) => {
        seen.push(...requests.map((request) => new WeakRef(request)));
        return { y: x };
      }),
      config: { maxBatchSize: 8 },
    });
    const infer = () => model.inferSample({ x: [1, 2, 3, 4] });
    await Promise.all(Array.from({ length: 20 }, infer));
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(seen).toHaveLength(20);
    expect(seen.filter((request) => request.deref() !== undefined)).toHaveLength(0);
  });
});

describe("unloaded versions", () => {
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
      logger: { error() {}, warn() {}, info() {}, debug() {} },
      extensions: [
        repository({ modelRepository: models.path, modelControlMode: "explicit", backends: { held } }),
      ],
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
    const index = await serviceOf(triton).repositoryIndex(false);
    expect(index.map(({ version, state, reason }) => [version, state, reason])).toEqual([
      ["1", "UNAVAILABLE", "unloaded"],
      ["2", "UNAVAILABLE", "unloaded"],
      ["3", "UNAVAILABLE", "unloaded"],
      ["4", "READY", undefined],
    ]);
  });
});

setFlagsFromString("--allow-natives-syntax");

const haveSameHiddenClass = new Function("a", "b", "return %HaveSameMap(a, b)") as (
  a: object,
  b: object,
) => boolean;

function source() {
  const controller = new AbortController();
  let asked = 0;
  return {
    controller,
    get asked() {
      return asked;
    },
    get signal() {
      asked++;
      return controller.signal;
    },
  };
}

describe("withSignal", () => {
  it("returns the object's fields and the signal of its source", () => {
    const from = source();
    const context = withSignal({ name: "m" }, from);
    expect(context.name).toBe("m");
    expect(context.signal).toBe(from.controller.signal);
  });

  it("requests the signal only when it is read", () => {
    const from = source();
    const context = withSignal({ name: "m" }, from);
    expect(from.asked).toBe(0);
    const { signal } = context;
    expect([signal.aborted, from.asked]).toEqual([false, 1]);
  });

  it("shares its hidden class with others, so that nothing keeps its source alive", () => {
    const [one, other] = [withSignal({ name: "a" }, source()), withSignal({ name: "b" }, source())];
    expect(haveSameHiddenClass(one, other)).toBe(true);
  });
});
