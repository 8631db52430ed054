import { type Logger, Triton } from "@tritonjs/core";
import { inspectRepository } from "@tritonjs/core/config";
import { expect, it } from "vitest";
import { RepositoryOnDisk } from "../../support/repository-on-disk.js";

const quiet: Logger = { error() {}, warn() {}, info() {}, debug() {} };

/** A backend whose models are files with a number. */
const scaling = `
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "./read/parse.mjs";

export default class Scale {
  static autoCompleteConfig(config) {
    config.addInput({ name: "x", dataType: "FP32", dims: [1] });
    config.addOutput({ name: "y", dataType: "FP32", dims: [1] });
    config.setMaxBatchSize(8);
  }
  async initialize({ modelDirectory }) {
    this.factor = parse(await readFile(join(modelDirectory, "factor.txt"), "utf8"));
  }
  execute(requests) {
    return requests.map(({ inputs: { x } }) => ({ y: x.data.map((value) => value * this.factor) }));
  }
}`;

it("models of a JavaScript backend share its module, and have the directories of their versions", async () => {
  await using backends = await RepositoryOnDisk.create({
    "scale/backend.js": scaling,
    "scale/package.json": '{ "type": "module" }',
    "scale/read/parse.mjs": "export const parse = Number;",
  });
  await using models = await RepositoryOnDisk.create({
    "thrice/config.pbtxt": 'backend: "scale" version_policy { all {} }',
    "thrice/1/factor.txt": "3",
    "thrice/2/factor.txt": "30",
  });
  const options = { backendDirectory: backends.path };
  await using triton = new Triton({ modelRepository: models.path, logger: quiet, ...options });
  await triton.ready();
  const ask = async (modelVersion: number) => {
    const { y } = await triton.infer("thrice", { x: [[1], [2]] }, { modelVersion });
    return Array.from(y!.data as Float32Array);
  };
  expect(await ask(1)).toEqual([3, 6]);
  expect(await ask(2)).toEqual([30, 60]);
  const inspections = await inspectRepository([models.path], options);
  expect(inspections.map(({ name, config, findings }) => [name, config?.runtime, findings])).toEqual([
    ["thrice", "backend.js", []],
  ]);
});
