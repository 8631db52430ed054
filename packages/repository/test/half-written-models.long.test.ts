import { setImmediate as nextTurn } from "node:timers/promises";
import { Triton } from "@tritonjs/core";
import { repository } from "@tritonjs/repository";
import { serviceOf } from "@tritonjs/server";
import { VirtualClock } from "@tritonjs/testing";
import { expect, it } from "vitest";
import { RepositoryOnDisk } from "../../../test/support/repository-on-disk.js";

const CONFIG = `backend: "javascript"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] } ]`;

const times = (factor: number) =>
  `export default class Times { execute(requests) { return requests.map(({ inputs: { x } }) => ({ y: [${factor} * x.data[0]] })); } }`;

it("a version that is half written when the repository is polled leaves the old one in service until it is complete", async () => {
  await using models = await RepositoryOnDisk.create({
    "m/config.pbtxt": CONFIG,
    "m/1/model.js": times(2),
  });
  const clock = new VirtualClock();
  const errors: string[] = [];
  const logger = { error: (line: string) => void errors.push(line), warn() {}, info() {}, debug() {} };
  await using triton = new Triton({
    clock,
    logger,
    extensions: [repository({ modelRepository: models.path, modelControlMode: "poll" })],
  });
  await triton.ready();
  const answer = async () => (await triton.infer("m", { x: [3] })).y!.get(0);
  const isLoading = async () =>
    (await serviceOf(triton).repositoryIndex(false)).some(({ state }) => state === "LOADING");
  /** Polls until a condition holds. Workers load in real time, in which the clock must not pass their time limit. */
  const until = async (condition: () => boolean | Promise<boolean>) => {
    while (!(await condition())) {
      await clock.advance(15_000);
      while (await isLoading()) await nextTurn();
    }
  };
  expect(await answer()).toBe(6);

  await models.write({ "m/2/model.js": times(5).slice(0, 60) });
  await until(() => errors.some((line) => line.includes("failed to load 'm' version 2")));
  expect(await answer()).toBe(6);

  await models.write({ "m/2/model.js": times(5) });
  await until(async () => (await answer()) === 15);

  await models.write({ "m/config.pbtxt": CONFIG.slice(0, 40) });
  const count = errors.length;
  await until(() => errors.length > count);
  expect(await answer()).toBe(15);
});
