import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Triton, TritonError } from "@tritonjs/core";
import { expect, it } from "vitest";
import {
  chainConfig,
  identityConfig,
  RepositoryOnDisk,
} from "../../../../test/support/repository-on-disk.js";

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

it.each([1, 2])(
  "random loads, unloads and file changes leave a server that matches the directory, %i",
  async (seed) => {
    await using models = await RepositoryOnDisk.create(whole);
    const logger = { error() {}, warn() {}, info() {}, debug() {} };
    await using triton = new Triton({ modelRepository: models.path, modelControlMode: "explicit", logger });
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
    const ready = (await triton.service.repositoryIndex(true)).map(
      ({ name, version }) => `${name}:${version}`,
    );
    expect(ready).toEqual(["a:1", "b:1", "chain:1", "double-chain:1"]);
    expect(triton.service.isReady()).toBe(true);
  },
);
